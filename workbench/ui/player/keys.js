/** The keyboard: arrows, Shift for a hundred, Home, End, e m r s n (Shift: back), space, / ? and Escape. */
(function (RP) {
  "use strict";

  const FIELD = "input:not([type=range], [type=radio], [type=checkbox]), textarea, select, [contenteditable], dialog, [role=listbox], [role=menu]";
  /** What moves about by itself: there only letters are ours. */
  const MOVES = "[role=treegrid], .rp-scroll, .rp-scrolls, .rp-text p, [role=tablist], input:not([type=range])";
  const LETTER = /^[a-z/?]$/i;
  const FAR = 100;

  /** Listen on `target`; keys typed into fields and menus are left alone, and arrows in tables. */
  RP.listenKeys = (target, player) => {
    const press = (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      // A dialog that has just closed keeps the focus until the page is drawn again.
      const on = event.target instanceof Element && !event.target.closest("dialog:not([open])") ? event.target : document.body;
      if (on.closest(FIELD)) return;
      if (event.key === " " && on.closest("button, a, summary")) return;
      if (!LETTER.test(event.key) && event.key !== "Escape" && on.closest(MOVES)) return;
      if (act(player, event)) event.preventDefault();
    };
    target.addEventListener("keydown", press);
    return () => target.removeEventListener("keydown", press);
  };


  const act = (player, event) => {
    const far = event.shiftKey ? FAR : 1;
    switch (event.key) {
      case "ArrowLeft":
        return player.step(-far);
      case "ArrowRight":
        return player.step(far);
      case "Home":
        return player.seek(0);
      case "End":
        return player.seek(player.trace.length - 1);
      case " ":
        return player.scrubber.toggle(!player.scrubber.playing, event.shiftKey ? -1 : 1) ?? true;
      case "Escape":
        return player.clear() ?? true;
      case "/":
        return player.find.open() ?? true;
      case "?":
        return player.help.open() ?? true;
      default: {
        const jump = RP.JUMPS.find(([, , key]) => key === event.key.toLowerCase());
        if (!jump) return false;
        player.scrubber.jump(jump[0], event.shiftKey ? -1 : 1);
        return true;
      }
    }
  };
})(globalThis.RadixPlayer);
