/** How numbers, tokens, nodes and requests are put into words. Every number has its unit. */
(function (RP) {
  "use strict";

  const grouped = new Intl.NumberFormat("en-US");
  const number = (n) => grouped.format(n);
  /** A run of ids longer than this is told by its ends. */
  const RUN = 6;
  /** Ids looked at for a node whose tokens have no text. */
  const MANY = 4096;
  RP.number = number;

  /** "1 token", "2 tokens", "3 pages" … */
  RP.count = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;

  /** Seconds in a readable unit. */
  RP.seconds = (s) => {
    if (s !== 0 && Math.abs(s) < 0.9995) return `${number(+(s * 1000).toPrecision(3))} ms`;
    return `${number(+s.toPrecision(Math.abs(s) < 100 ? 3 : 4))} s`;
  };

  /** A moment on an axis that spans `span` seconds: as many decimals as tell its ends apart. */
  RP.instant = (s, span) => {
    if (s === 0 || span >= s / 20) return RP.seconds(s);
    const decimals = Math.min(6, Math.max(1, 2 - Math.floor(Math.log10(span || 1))));
    return `${s.toFixed(decimals)} s`;
  };

  /** The step of an event among all that were planned: "step 3 of 48", or after which one, or before the first. */
  RP.stepOf = (player, seq) => {
    const step = player.trace.step.a[seq];
    const { planned } = player.replay.segments;
    const last = number(planned);
    if (step <= planned) return `step ${number(step)} of ${last}`;
    return planned ? `after step ${last} of ${last}` : "before step 1";
  };

  RP.percent = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "–");

  /** Text of token ids; ids whose text is unknown are told as numbers. */
  RP.tokensText = (trace, ids) => {
    let out = "";
    for (const id of ids) {
      const text = trace.text(id);
      out += text === null ? ` ${id}` : text;
    }
    return out;
  };

  /** As `tokensText`, but of ids without a text that rise by one only the first and the last are told. */
  RP.shortText = (trace, ids) => {
    let out = "";
    for (let i = 0; i < ids.length; i++) {
      const text = trace.text(ids[i]);
      out += text === null ? ` ${ids[i]}` : text;
      let end = i;
      while (text === null && end + 1 < ids.length && ids[end + 1] === ids[end] + 1 && trace.text(ids[end + 1]) === null) end++;
      if (end - i < RUN) continue;
      out += ` … ${ids[end]}`;
      i = end;
    }
    return out;
  };

  /** A token's text, whitespace made visible. */
  RP.visible = (text) => text.replace(/ /g, "␣").replace(/\n/g, "↵") || "∅";

  /** One token by its id. */
  RP.tokenMark = (trace, id) => {
    const text = trace.text(id);
    return text === null ? String(id) : RP.visible(text);
  };

  /** On one line. */
  RP.oneLine = (text) => text.replace(/\s+/g, " ").trim();

  /** A request's own name: its label where it has one. */
  RP.requestName = (trace, number_) => {
    const { name } = trace.requests[number_];
    const label = trace.arrival(number_, "label");
    return label ? `${name} ${label}` : name;
  };

  /** The start of a node's text; ids without a text are many to a word, and more of them are looked at. */
  RP.nodeText = (state, slot, limit = 48) => {
    const [first] = state.nodeTokens(slot, 1);
    const plain = state.trace.text(first) !== null;
    return RP.oneLine(RP.shortText(state.trace, state.nodeTokens(slot, plain ? limit : MANY)));
  };

  /** "#9 parking policy". */
  RP.nodeName = (state, id) => {
    const slot = state.slotOfNode.get(id) - 1;
    if (slot < 0) return `#${id}`;
    const text = RP.nodeText(state, slot, 12);
    return `#${id} ${text.length > 26 ? `${text.slice(0, 25)}…` : text}`;
  };

  RP.clockWords = (header) => (header.clock === "virtual" ? "simulated time" : "measured time");
})(globalThis.RadixPlayer);
