/** The automaton, drawn by the server for the room there is; here only the walk is marked in it. */
(function (RP) {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";

  class Walk {
    constructor() {
      this.panel = RP.panel("walk", "Automaton");
      this.picture = RP.el("div", { class: "rd-automaton", tabindex: "0", role: "region", "aria-label": "Automaton. The table shows the same." });
      this.where = RP.el("p", { class: "rd-where" });
      this.panel.body.append(this.where, this.picture);
      this.panel.explain(RP.legend([["rd rd-key-edge", "a choice of characters"], ["rd rd-key-run", "a forced run"], ["rd rd-key-here", "before the token"], ["rd rd-key-next", "after it"], ["rd rd-key-passed", "passed"]]));
      this.width = 0;
      this.drawn = null;
      let timer;
      new ResizeObserver(() => {
        clearTimeout(timer);
        timer = setTimeout(() => this.asked && this.picture.clientWidth !== this.width && this.draw(), 150);
      }).observe(this.picture);
    }

    show(facts, asked) {
      this.facts = facts;
      this.asked = asked;
      this.panel.root.hidden = !facts.grammar;
      return facts.grammar ? this.draw() : null;
    }

    /** Fetch the drawing for the present width. Only the last one that was asked for counts. */
    async draw() {
      if (this.picture.hidden) return;
      this.width = this.picture.clientWidth;
      const turn = (this.turn = (this.turn || 0) + 1);
      const answer = await fetch(`/decode/automaton?${new URLSearchParams({ ...this.asked, width: String(this.width) })}`);
      if (!answer.ok || turn !== this.turn) return;
      this.drawn = await answer.json();
      if (turn !== this.turn) return;
      const { svg, hidden, shown } = this.drawn;
      this.picture.replaceChildren();
      if (svg) {
        const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
        this.svg = document.importNode(parsed, true);
        this.svg.setAttribute("role", "img");
        this.svg.setAttribute("aria-label", `Automaton of ${shown} states between characters`);
        this.dots = ["rd-dot-next", "rd-dot-here"].map((name) => {
          const dot = document.createElementNS(SVG, "circle");
          dot.setAttribute("class", name);
          dot.setAttribute("r", "6.5");
          this.svg.append(dot);
          return dot;
        });
        this.picture.append(this.svg);
      }
      const { states, count } = this.facts.grammar;
      this.panel.note.textContent = svg ? `${RP.count(states, "byte state")}, ${RP.count(count, "edge")}` : "";
      this.hidden = hidden ? ` Drawn is what the walk passed and what lies next to it; ${RP.count(hidden, "state")} hidden.` : "";
      this.panel.root.dataset.width = String(this.width);
      if (this.at) this.mark(...this.at);
    }

    /** Mark where the answer stands before and after a token. */
    mark(which, at) {
      this.at = [which, at];
      const token = this.facts.arms[which].tokens[at];
      if (!token || !this.drawn) return;
      if (!this.drawn.svg) {
        const { states, backend } = this.facts.grammar;
        this.where.textContent = states ? `The automaton has ${RP.count(states, "state")}, too many to be drawn.` : `This grammar was compiled by ${backend}, which shows no automaton.`;
        return;
      }
      const ends = [[token.target, "ra-next", this.dots[0]], [token.state, "ra-here", this.dots[1]]];
      for (const [, name] of ends) this.svg.querySelectorAll(`.${name}`).forEach((node) => node.classList.remove(name));
      let seen = null;
      for (const [state, name, dot] of ends) {
        const node = this.put(state, name, dot);
        if (node) seen = node;
      }
      this.where.textContent = this.words(token) + this.hidden;
      if (seen) this.bring(seen);
    }

    /** Mark one state; returns what was marked. */
    put(state, name, dot) {
      dot.style.display = "none";
      const place = state === null ? null : this.drawn.places[state];
      if (!place) return null;
      if (place.edge === null) {
        const node = this.svg.querySelector(`[data-state="${place.node}"]`);
        if (node) node.classList.add(name);
        return node;
      }
      const edge = this.svg.querySelector(`[data-edge="${place.edge}"]`);
      if (!edge) return null;
      edge.classList.add(name);
      const path = edge.querySelector("path");
      const { x, y } = path.getPointAtLength(path.getTotalLength() * place.share);
      dot.setAttribute("cx", x);
      dot.setAttribute("cy", y);
      dot.style.display = "";
      return dot;
    }

    words(token) {
      const name = (state) => {
        const place = state === null ? null : this.drawn.places[state];
        if (!place) return state === null ? "unknown" : `state ${state}, within a character`;
        if (place.edge === null) return `state ${state}`;
        return `state ${state}, within the forced run “${place.label}”`;
      };
      return `Before: ${name(token.state)}. After: ${name(token.target)}.`;
    }

    /** Scroll the picture, not the page. */
    bring(node) {
      const box = node.getBoundingClientRect();
      const frame = this.picture.getBoundingClientRect();
      if (box.top < frame.top + 20 || box.bottom > frame.bottom - 20) this.picture.scrollTop += box.top - frame.top - frame.height / 2;
    }
  }

  RP.Walk = Walk;
})(globalThis.RadixPlayer);
