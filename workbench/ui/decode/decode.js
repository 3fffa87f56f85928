/**
 * The Decode page's picture: words, tapes, mask, automaton, costs, of one or two runs that the server knows.
 * `show({run, plain})` fetches and draws; position and arm are in the address.
 */
(function (RP) {
  "use strict";

  const KEYS = { ArrowLeft: -1, ArrowRight: 1 };
  const TYPING = "input, textarea, select, [contenteditable], [role=listbox], [role=option]";

  class Decode {
    constructor(root) {
      this.root = root;
      root.classList.add("radix-player", "rd");
      this.strip = RP.el("p", { class: "rw-strip", id: "shown", role: "status" });
      this.words = RP.el("div", { class: "rd-words rp-panel" });
      this.tape = new RP.Tape((arm, at) => this.select(arm, at));
      this.mask = new RP.Mask();
      this.walk = new RP.Walk();
      this.costs = RP.panel("costs", "What it costs");
      this.tapeTwin = RP.el("div", { class: "rd-twin", hidden: "" });
      this.edgeTwin = RP.el("div", { class: "rd-twin", hidden: "" });
      this.plainText = RP.el("details", { class: "rd-text" });
      this.tape.panel.body.append(this.tapeTwin, this.plainText);
      this.walk.panel.body.append(this.edgeTwin);
      this.tape.panel.tools.append(RP.twinSwitch("the tape", (on) => this.twin(this.tapeTwin, this.tape.lines, on)));
      this.walk.panel.tools.append(RP.twinSwitch("the automaton", (on) => this.twin(this.edgeTwin, this.walk.picture, on)));
      this.main = RP.el(
        "div",
        { class: "rd-main", hidden: "" },
        this.words,
        RP.el("div", { class: "rd-left" }, this.tape.panel.root, this.walk.panel.root),
        RP.el("aside", { class: "rd-right", "aria-label": "The chosen token" }, this.mask.panel.root, this.costs.root),
      );
      root.append(this.strip, this.main);
      document.addEventListener("keydown", (event) => this.key(event));
      addEventListener("hashchange", () => this.fromAddress());
    }

    twin(table, picture, on) {
      table.hidden = !on;
      picture.hidden = on;
      if (on) this.fillTwins();
      else if (picture === this.tape.lines) this.tape.lay();
      else this.walk.draw();
    }

    /** Show runs by their ids; `words` say what kind of run it is. */
    async show(asked, words) {
      this.root.dataset.ready = "false";
      this.asked = Object.fromEntries(Object.entries(asked).filter(([, value]) => value));
      const answer = await fetch(`/decode/facts?${new URLSearchParams(this.asked)}`);
      if (!answer.ok) {
        this.main.hidden = true;
        this.strip.replaceChildren(answer.status === 404 || answer.status === 400 ? await answer.text() : "The server did not answer.");
        this.root.dataset.ready = "gone";
        return;
      }
      const facts = (this.facts = await answer.json());
      this.main.hidden = false;
      this.about(words);
      this.words.replaceChildren(...facts.words.map((text, i) => RP.el("p", { class: i ? "rd-fine" : "rd-lead", text })), ...(facts.note ? [RP.el("p", { class: "rd-fine rd-note", text: facts.note })] : []));
      this.tape.show(facts);
      this.plainText.replaceChildren(RP.el("summary", { text: "The answer as text" }), ...this.texts());
      this.costs.body.replaceChildren(RP.costTable(facts));
      this.root.dataset.run = asked.run;
      const drawn = this.walk.show(facts, this.asked);
      this.fromAddress();
      this.fillTwins();
      await drawn;
      this.root.dataset.ready = "true";
    }

    /** The answer, once where both arms say the same. */
    texts() {
      const { arms } = this.facts;
      const said = arms.filter((arm, i) => !i || arm.text !== arms[0].text);
      return said.flatMap((arm) => [
        ...(said.length > 1 ? [RP.el("p", { class: "rp-note", text: arm.name })] : []),
        RP.el("pre", { text: arm.text ?? "The run has no tokenizer, so there is no text.", tabindex: "0" }),
      ]);
    }

    about(words) {
      const { facts } = this;
      const clock = facts.simulated ? "simulated time" : "measured time";
      const link = (arm, kind, text) => RP.el("a", { href: `/runs/${arm.run}.${kind}`, text });
      const links = facts.arms.flatMap((arm, i) => [i ? ", " : " · save the trace: ", link(arm, "jsonl", arm.name)]);
      this.strip.replaceChildren(RP.el("b", { text: facts.recorded ? "Recorded run of the real engine:" : words }), ` ${facts.name || ""} · ${facts.about} · ${clock}`, ...links);
    }

    /** Where the address says; else the first token that was not simply sampled. */
    fromAddress() {
      if (!this.facts) return;
      const hash = new URLSearchParams(location.hash.slice(1));
      const mine = hash.get("run") === this.asked.run;
      const arm = mine && hash.get("arm") === "1" && this.facts.arms.length > 1 ? 1 : 0;
      const { tokens } = this.facts.arms[arm];
      const given = mine && /^\d+$/.test(hash.get("at") || "") ? +hash.get("at") : null;
      const telling = Math.max(0, tokens.findIndex((t) => t.source !== "sampled"));
      this.select(arm, Math.max(0, Math.min(tokens.length - 1, given === null ? telling : given)), false);
    }

    select(arm, at, focus = true) {
      this.arm = arm;
      this.at = at;
      this.tape.select(arm, at, focus && this.tapeTwin.hidden);
      this.mask.show(this.facts, arm, at);
      this.walk.mark(arm, at);
      this.root.dataset.at = String(at);
      this.root.dataset.arm = String(arm);
      for (const row of this.tapeTwin.querySelectorAll("tr[data-at]")) row.setAttribute("aria-current", String(+row.dataset.at === at && +row.closest("[data-arm]").dataset.arm === arm));
      const hash = new URLSearchParams({ ...this.asked, at: String(at), ...(arm ? { arm: "1" } : {}) });
      // With the path: the page's base is the server's root, not this page.
      if (location.hash.slice(1) !== hash.toString()) history.replaceState(null, "", `${location.pathname}${location.search}#${hash}`);
    }

    fillTwins() {
      const { facts } = this;
      if (!this.tapeTwin.hidden) this.tapeTwin.replaceChildren(...facts.arms.map((_, which) => RP.el("div", { "data-arm": which }, RP.tapeTable(facts, which, (arm, at) => this.select(arm, at)))));
      if (!this.edgeTwin.hidden && facts.grammar) this.edgeTwin.replaceChildren(RP.edgeTable(facts.grammar));
    }

    /** Left and right along a tape, up and down between the two, Home and End. */
    key(event) {
      if (!this.facts || this.main.hidden || event.altKey || event.ctrlKey || event.metaKey || event.target.closest(TYPING)) return;
      const { tokens } = this.facts.arms[this.arm];
      const last = tokens.length - 1;
      if (last < 0) return;
      let [arm, at] = [this.arm, this.at];
      if (event.key in KEYS) at += KEYS[event.key] * (event.shiftKey ? 10 : 1);
      else if (event.key === "Home") at = 0;
      else if (event.key === "End") at = last;
      else if (event.target.closest(".rd-lines") && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        const to = event.key === "ArrowDown" ? 1 : 0;
        const beside = to === arm ? null : this.tape.beside(arm, at);
        if (beside === null) return;
        [arm, at] = [to, beside];
      } else return;
      event.preventDefault();
      this.select(arm, Math.max(0, Math.min(this.facts.arms[arm].tokens.length - 1, at)));
    }
  }

  RP.mountDecode = (root) => new Decode(root);
})(globalThis.RadixPlayer);
