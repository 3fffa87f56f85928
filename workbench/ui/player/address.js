/** Position and selection in the page's address, so that a moment can be sent; in a frame there is none. */
(function (RP) {
  "use strict";

  /** Keep position and selection in the page's address: #seq=612&node=9 or &request=R1. */
  RP.linkToAddress = (player) => {
    if (location.protocol === "about:") return;
    const read = () => {
      const at = new URLSearchParams(location.hash.slice(1));
      if (at.has("seq")) player.seek(+at.get("seq"));
      if (at.has("node")) player.select({ node: +at.get("node") });
      else if (at.has("request")) player.select({ request: at.get("request") });
    };
    const write = () => {
      const { seq, selection } = player.state();
      history.replaceState(null, "", `#${new URLSearchParams({ seq: String(seq), ...selection })}`);
    };
    read();
    let timer;
    const later = () => {
      clearTimeout(timer);
      timer = setTimeout(write, 200);
    };
    player.on("seek", later);
    player.on("select", later);
    addEventListener("hashchange", read);
  };
})(globalThis.RadixPlayer);
