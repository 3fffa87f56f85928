/** The group of nodes that no look-up can find, because what stood above them has left. */
(function (RP) {
  "use strict";

  const SIZE = 11.5;

  /** What the group is called, in two halves; null where there is none. */
  const halves = (state, layout) =>
    layout.lost < 0 ? null : [`unreachable: ${RP.count(layout.lostTokens / state.pageSize, "page")}`, "that no look-up can find"];

  /** "unreachable: 3 pages that no look-up can find"; "" where there is none. */
  RP.lostWords = (state, layout) => (halves(state, layout) || []).join(" ");

  /** The group's heading: a dashed frame, and as much of its name as fits. */
  RP.drawLost = (ctx, theme, state, layout, { x, y, w, h }) => {
    ctx.strokeStyle = theme.mute;
    ctx.lineWidth = 1;
    ctx.setLineDash([4, 3]);
    ctx.beginPath();
    ctx.roundRect(x, y, Math.max(2, w), h, 5);
    ctx.stroke();
    ctx.setLineDash([]);
    const font = `${SIZE}px ${theme.font}`;
    const room = w - 14;
    const [first, second] = halves(state, layout);
    const fits = (lines) => lines.every((text) => RP.fitText(ctx, font, text, room) === text);
    const two = h >= 34 ? [[first, second]] : [];
    const lines = [[`${first} ${second}`], ...two, [first], ["unreachable"]].find(fits) || [];
    ctx.fillStyle = theme.ink;
    ctx.textBaseline = "alphabetic";
    lines.forEach((text, i) => ctx.fillText(text, x + 7, y + h / 2 + 4 + 15 * (i - (lines.length - 1) / 2)));
  };
})(globalThis.RadixPlayer);
