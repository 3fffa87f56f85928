"""The Lab's control for model, device and dtype: what a choice costs is said before anything is fetched."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

import gradio as gr

from engine import ModelError
from workbench.ui import text
from workbench.ui.runs import BusyError
from workbench.ui.serving import DTYPES, Offer
from workbench.ui.worker import Worker

SHARED = "The model is shared by everyone on this server: all open pages change with it, once the run in progress has ended."

LOOK = "() => { document.dispatchEvent(new Event('rw-look')); }"
QUEUED: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", "concurrency_limit": None}


class ModelPicker:
    """A folded panel: three choices, what they cost, Load."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def build(self) -> None:
        """Lay out the panel inside the current Blocks."""
        start = self.worker.model
        with gr.Accordion("Model, device, dtype: see or change", open=False, elem_id="model-panel") as panel:
            with gr.Row(elem_id="model-row", equal_height=False):
                self.model = gr.Dropdown([o.label for o in self.worker.offers], value=start.offer.label, label="Model", elem_id="model", scale=3, min_width=220)
                self.device = gr.Dropdown(["auto"], value="auto", label="Device", elem_id="device", scale=1, min_width=90)
                self.dtype = gr.Dropdown(list(DTYPES), value=start.dtype, label="Dtype", elem_id="dtype", scale=1, min_width=110)
                self.load = gr.Button("Load", elem_id="load-model", interactive=False, scale=0, min_width=80)
                self.stop = gr.Button("Stop", elem_id="stop-loading", visible=False, scale=0, min_width=70)
            self.cost = gr.HTML(_cost(["Looking how big it is…"]), elem_id="model-cost", apply_default_css=False)
            self.said = gr.HTML(elem_id="model-said", apply_default_css=False)
        self.seen = gr.State(False)
        choice = [self.model, self.device, self.dtype]
        costs = {"fn": self.costs, "inputs": choice, "outputs": [self.cost, self.load], "concurrency_id": "model-costs", **QUEUED}
        panel.expand(self.opened, None, [self.seen, *choice], concurrency_id="model-opened", **QUEUED).then(**costs)
        for box in choice:
            box.input(trigger_mode="always_last", **costs)
        self.load.click(self.choose, choice, [self.said], queue=False, **QUEUED).then(None, js=LOOK)
        self.stop.click(self.worker.stop_loading, None, None, concurrency_id="model-stop", **QUEUED)
        self._shown = [self.seen, *choice], [*choice, self.cost, self.load]

    def follow(self, settled: gr.State) -> None:
        """Show the model in use whenever that is another one, to those who have looked at the panel."""
        settled.change(self.again, self._shown[0], self._shown[1], concurrency_id="model-again", **QUEUED)

    @property
    def told(self) -> list[gr.HTML | gr.Button]:
        """The components that `tell` speaks of."""
        return [self.said, self.load, self.stop]

    def opened(self) -> tuple[bool, gr.Dropdown, gr.Dropdown, gr.Dropdown]:
        """The panel was opened; asking for this machine's devices may have to wait for torch."""
        return True, *self._in_use()

    def again(self, seen: bool, *before: str) -> tuple[Any, ...]:
        """Another model is in use: the choice follows, unless none is and the choice may be tried again."""
        model = self.worker.model
        if not seen or model.status != "ready":
            return (gr.skip(),) * 5
        lines, loadable = self._costs(model.offer, model.device, model.dtype)
        return *self._in_use(), _cost(lines), gr.Button(interactive=loadable)

    def _in_use(self) -> tuple[gr.Dropdown, gr.Dropdown, gr.Dropdown]:
        from engine import devices

        model = self.worker.model
        here = ["auto", *devices()]
        return (
            gr.Dropdown([o.label for o in self.worker.offers], value=model.offer.label),
            gr.Dropdown(here, value=model.device if model.device in here else "auto"),
            gr.Dropdown(value=model.dtype),
        )

    def costs(self, label: str, device: str, dtype: str) -> Iterator[tuple[str, gr.Button]]:
        """What a choice costs: bytes to download, asked of the hub now, and memory."""
        try:
            offer = self._offer(label, device, dtype)
            yield _cost(["Looking how big it is…"]), gr.Button(interactive=False)
            lines, loadable = self._costs(offer, device, dtype)
        except ModelError as error:
            yield _cost([f"It cannot be had: {error}."]), gr.Button(interactive=False)
        else:
            yield _cost(lines), gr.Button(interactive=loadable)

    def choose(self, label: str, device: str, dtype: str) -> Any:
        """Load was pressed. How it goes on is told by the head's tick alone, so that nothing older overwrites it."""
        try:
            self.worker.choose(self._offer(label, device, dtype), device, dtype)
        except (ModelError, BusyError) as error:
            return text.message(str(error), "error", "model-message")
        return gr.skip()

    def tell(self) -> tuple[Any, ...]:
        """How far a model is that is on its way, or why it did not come; and which buttons are live."""
        going, latest = self.worker.on_its_way, self.worker.coming or self.worker.model
        if going is not None:
            words = text.message(f"On its way: {going.progress}", "busy", "model-message")
        elif latest.status == "failed":
            stays = f" {self.worker.model.shown} stays in use." if self.worker.model.status == "ready" else ""
            words = text.message(f"{latest.offer.label} was not loaded: {latest.error}.{stays}", "error", "model-message")
        else:
            words = ""
        return words, gr.Button(interactive=going is None), gr.Button(visible=going is not None)

    def _offer(self, label: str, device: str, dtype: str) -> Offer:
        from engine import devices

        offer = next((o for o in self.worker.offers if o.label == label), None)
        if offer is None:
            raise ModelError("model: choose one of the list")
        if device not in ("auto", *devices()):
            raise ModelError(f"device: this machine has {', '.join(devices())}")
        if dtype not in DTYPES:
            raise ModelError(f"dtype: must be one of {', '.join(DTYPES)}")
        return offer

    def _costs(self, offer: Offer, device: str, dtype: str) -> tuple[list[str], bool]:
        from engine import devices, free_memory, model_needs

        needs = model_needs(offer.name)
        where = devices()[0] if device == "auto" else device
        kind = dtype if dtype != "auto" else (needs.own_dtype or "float32") if where == "cuda" else "float32"
        used = self.worker.model
        same = used.status == "ready" and (used.offer, used.runs_on, used.runs_in) == (offer, where, kind)
        lines = ["In use now." if same else _download(needs)]
        weights, free = needs.weight_bytes(kind), free_memory(where)
        if weights is not None:
            room = f"; {_size(free)} are free" if free is not None and not same else ""
            lines.append(f"Its weights take {_size(weights)} of memory in {kind} on {where}{room}.")
        return lines, not same and self.worker.on_its_way is None


def _download(needs: Any) -> str:
    if needs.unknown:
        return f"Size unknown: {needs.unknown}."
    if needs.download == 0:
        return "Already on this disk, no download."
    rest = f"; the rest of {_size(needs.whole)} is here already" if needs.download != needs.whole else ""
    return f"Downloads {_size(needs.download)} from {needs.host}{rest}."


def _size(count: float) -> str:
    """Bytes as people say them."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _cost(lines: list[str]) -> str:
    said = html.escape(" ".join(lines))
    return f'<p class="rw-message" id="model-size" role="status">{said}</p><p class="rw-fine">{SHARED}</p>'
