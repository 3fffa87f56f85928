/** Colours, read from the style sheet so that canvas and page never differ. */
(function (RP) {
  "use strict";

  const NAMES = [
    "bg", "panel", "line", "ink", "mute", "accent", "soft",
    "cached", "computed", "recomputed", "decode", "jump", "wait", "evict", "r0", "r1", "r2", "r3", "r4", "r5",
  ];
  const DARK = "#0d1114";
  const LIGHT = "#ffffff";

  const channel = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);

  /** Relative luminance of a colour given as #rgb or #rrggbb. */
  const luminance = (colour) => {
    const hex = colour.slice(1);
    const wide = hex.length === 3 ? hex.replace(/./g, "$&$&") : hex;
    const [r, g, b] = [0, 2, 4].map((i) => channel(parseInt(wide.slice(i, i + 2), 16) / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  /** Black or white, whichever is easier to read on `colour`. */
  RP.labelOn = (colour) => {
    const l = luminance(colour);
    return 1.05 / (l + 0.05) > (l + 0.05) / (luminance(DARK) + 0.05) ? LIGHT : DARK;
  };

  /** The colours in force at `root`; `ramp` and `labels` go from just used to longest idle. */
  RP.readTheme = (root) => {
    const style = getComputedStyle(root);
    const theme = {};
    for (const name of NAMES) theme[name] = style.getPropertyValue(`--rp-${name}`).trim();
    theme.ramp = [theme.r0, theme.r1, theme.r2, theme.r3, theme.r4, theme.r5];
    theme.labels = theme.ramp.map(RP.labelOn);
    theme.font = style.fontFamily;
    theme.mono = style.getPropertyValue("--rp-mono").trim();
    return theme;
  };

  /** Call `changed` when the page or the player turns light or dark; returns a function that stops it. */
  RP.watchTheme = (root, changed) => {
    const observer = new MutationObserver(changed);
    const options = { attributes: true, attributeFilter: ["class", "data-theme"] };
    for (const node of [document.documentElement, document.body, root]) observer.observe(node, options);
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      system.removeEventListener("change", changed);
    };
  };
})(globalThis.RadixPlayer);
