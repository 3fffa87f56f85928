/**
 * A tidy tree, root at the left: leaves get a row each in order, a parent stands midway between its first
 * and its last child, a level is a column. One pass up and one down: O(nodes), no two edges cross.
 */
(function (RP) {
  "use strict";

  /** Room between levels for the links, between rows for air, and at the left for the root, in pixels. */
  const LINK = 30;
  const SHORT = 14;
  /** A level narrower than this gets short links. */
  const NARROW = 100;
  const AIR = 6;
  const ROOT = 18;

  /**
   * @param {RP.Layout} layout preorder, rows (depth) and children of the live nodes
   * @param {{width: number, height: number, least: number, most: number}} room pixels; a row's height is
   *   between `least` and `most`
   * @returns {{places: Map, height: number, root: number, lost: Object}} slot -> {x, y, w, h} with y its middle;
   *   the height it takes; the root's y; the place of the heading over what no look-up can find, or null.
   */
  RP.tidy = (layout, room) => {
    let leaves = 0;
    for (let i = 0; i < layout.n; i++) if (layout.first[layout.slots[i]] < 0) leaves++;
    const pitch = Math.max(room.least, Math.min(room.most, room.height / Math.max(1, leaves)));
    const height = Math.max(room.height, leaves * pitch);
    const top = (height - leaves * pitch) / 2;
    const column = (room.width - ROOT) / Math.max(1, layout.rows);
    const link = column < NARROW ? SHORT : LINK;
    const places = new Map();
    let row = 0;
    for (let i = 0; i < layout.n; i++) {
      const slot = layout.slots[i];
      const x = ROOT + layout.row[slot] * column + link / 2;
      const y = layout.first[slot] < 0 ? top + (row++ + 0.5) * pitch : 0;
      places.set(slot, { x, y, w: Math.max(8, column - link), h: Math.min(pitch - AIR, 40) });
    }
    for (let i = layout.n - 1; i >= 0; i--) {
      const slot = layout.slots[i];
      if (layout.first[slot] >= 0) places.get(slot).y = between(layout, places, layout.first[slot]);
    }
    const { roots, lost } = layout;
    const heading = lost < 0 ? null : { x: ROOT + link / 2, y: between(layout, places, lost), w: Math.max(8, column - link), h: Math.min(pitch - AIR, 40) };
    return { places, height, root: roots >= 0 && roots !== lost ? between(layout, places, roots, lost) : height / 2, lost: heading };
  };

  /** Midway between the first of some siblings and the last before `stop`. */
  const between = (layout, places, first, stop = -1) => {
    let last = first;
    while (layout.next[last] >= 0 && layout.next[last] !== stop) last = layout.next[last];
    return (places.get(first).y + places.get(last).y) / 2;
  };
})(globalThis.RadixPlayer);
