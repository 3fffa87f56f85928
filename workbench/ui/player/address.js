/** Position, replica, selection and view in the page's address, so that a moment can be sent; in a frame there is none. */
(function (RP) {
  "use strict";

  const OURS = ["seq", "replica", "moment", "node", "request", "view"];

  /**
   * Keep them in the page's address: #seq=612&node=9 or &request=R1, &view=tree; what else stands there stays. Of
   * several replicas `replica` is shown, and `seq` counts its events; without it `seq` counts the run's. `moment` is
   * where the run stood, if that is later than the event.
   */
  RP.linkToAddress = (player) => {
    if (location.protocol === "about:") return;
    const ofUs = (at) => OURS.some((name) => at.has(name));
    /** As last read or written: another moment in the address is somebody's, and the event that tells of it is on its way. */
    let known = "";
    const goTo = (at) => {
      const seq = at.has("seq") ? +at.get("seq") : null;
      if (at.has("replica")) player.show(+at.get("replica"));
      else if (seq !== null && player.fleet.several) {
        player.show(player.fleet.toldBy(seq));
        return player.seekMoment(seq);
      }
      if (seq !== null) player.seek(seq);
      if (at.has("moment")) player.seekMoment(+at.get("moment"));
    };
    const read = () => {
      known = location.hash;
      const at = new URLSearchParams(known.slice(1));
      if (!ofUs(at)) return;
      if (at.has("view")) player.setView(at.get("view"));
      goTo(at);
      if (at.has("node")) player.select({ node: +at.get("node") });
      else if (at.has("request")) player.select({ request: at.get("request") });
      else player.select(null);
    };
    const write = () => {
      const { replica, seq, moment, selection, view } = player.state();
      const { several } = player.fleet;
      const at = new URLSearchParams(location.hash.slice(1));
      if (location.hash !== known && ofUs(at)) return;
      for (const name of OURS) at.delete(name);
      const ours = {
        seq: String(seq), ...(several ? { replica } : {}), ...(several && moment > player.shown.moment(seq) ? { moment } : {}), ...selection, ...(view === RP.VIEWS[0] ? {} : { view }),
      };
      for (const [name, value] of Object.entries(ours)) at.set(name, value);
      history.replaceState(null, "", `#${at}`);
      known = location.hash;
    };
    read();
    let timer;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(write, 200);
    };
    for (const name of ["seek", "select", "view"]) player.on(name, later);
    addEventListener("hashchange", read);
  };
})(globalThis.RadixPlayer);
