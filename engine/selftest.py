"""The start-up self-test: 40 tokens through our path and through transformers' own, on this device.

Our path has to agree in float32; where its fused kernels do not (some devices' are wrong for some
shapes), the plain ones are tried and taken, and that is said.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import torch

from engine.executor.base import Row
from engine.executor.kv import KV
from engine.executor.llama_forward import LlamaForward
from engine.executor.step import pack
from engine.executor.transformers_forward import TransformersForward, own_attention
from engine.failures import ModelError
from engine.loaded import LoadedModel
from engine.request import Request, SamplingParams

TOLERANCE = 1e-3
"""Largest difference of a logit in float32."""
TOKENS = 40
PAGE_SIZE = 4
SHORT = 2
"""Layers of the float32 copy that stands in for a model of another dtype."""


def choose_path(loaded: LoadedModel) -> None:
    """Set `forward` and `plain` to the fastest path that agrees; raises ModelError when none does, twice.

    A wrong kernel is wrong again; what a second try does not show was a moment's fault, and is only noted.
    """
    try:
        _choose(loaded)
    except ModelError as first:
        _choose(loaded)
        loaded.notes.append(f"the first self-test failed, the second did not: {first}")


def _choose(loaded: LoadedModel) -> None:
    stand_in = loaded if loaded.dtype is torch.float32 else _short_copy(loaded)
    wanted = _reference(stand_in)
    tried: list[str] = []
    kinds: list[type[LlamaForward] | type[TransformersForward]] = [TransformersForward]
    if LlamaForward.fits(loaded.model):
        kinds.insert(0, LlamaForward)
    for kind in kinds:
        for plain in (False, True):
            trial = replace(stand_in, forward=kind(stand_in.model), plain=plain)
            apart = float((_ours(trial) - wanted).abs().max())
            if apart <= TOLERANCE:
                loaded.forward = trial.forward if stand_in is loaded else kind(loaded.model)
                loaded.plain = plain
                if plain:
                    loaded.notes.append(f"the fused attention of {loaded.device.type} is wrong; the plain one is used")
                return
            tried.append(f"{kind.name}{' plain' if plain else ''} {apart:.2g}")
    raise ModelError(
        f"{loaded.name}: our logits and transformers' differ on {loaded.device.type} ({', '.join(tried)})"
    )


def _tokens(loaded: LoadedModel) -> list[int]:
    """Ids spread over the vocabulary."""
    return [(7919 * i + 13) % loaded.vocab_size for i in range(1, TOKENS + 1)]


@torch.inference_mode()
def _reference(loaded: LoadedModel) -> torch.Tensor:
    """Logits [TOKENS, vocabulary] as transformers computes them."""
    with own_attention(loaded.model) as model:
        ids = torch.tensor([_tokens(loaded)], device=loaded.device)
        logits: torch.Tensor = model(ids, use_cache=False).logits[0]
    return logits[[16, 38, 39, 39]].float().cpu()


@torch.inference_mode()
def _ours(loaded: LoadedModel) -> torch.Tensor:
    """The same positions' logits from a prompt cut in two, then decoded, beside a second row of another length."""
    layers, heads, width = loaded.kv_shape
    count = -(-TOKENS // PAGE_SIZE)
    kv = KV(layers, 2 * count, PAGE_SIZE, heads, width, loaded.dtype, loaded.device, plain=loaded.plain)
    pages = list(range(2 * count))[::-1]
    tables = pages[::2], pages[1::2]
    tokens = _tokens(loaded)

    def run(*cuts: tuple[int, int, int, bool]) -> torch.Tensor:
        rows = [
            Row(Request(str(which), tokens, SamplingParams(), 0.0, which), tokens[a:b], a, tables[which], sample)
            for which, a, b, sample in cuts
        ]
        return loaded.forward(pack(rows, PAGE_SIZE, loaded.device, loaded.dtype), kv)

    first = run((0, 0, 17, True), (1, 0, 39, False))
    second = run((0, 17, 39, True), (1, 39, 40, True))
    third = run((0, 39, 40, True))
    return torch.cat([first, second, third]).float().cpu()


def _short_copy(loaded: LoadedModel) -> LoadedModel:
    """The model's first layers in float32, on the same device."""
    config = copy.deepcopy(loaded.model.config)
    text = config.get_text_config()
    text.num_hidden_layers = min(SHORT, text.num_hidden_layers)
    if getattr(text, "layer_types", None):
        text.layer_types = text.layer_types[: text.num_hidden_layers]
    with torch.device(loaded.device):
        model = type(loaded.model)(config).float().eval()
    missing, _ = model.load_state_dict(loaded.model.state_dict(), strict=False)
    if [name for name in missing if not name.startswith("lm_head")]:
        raise ModelError(f"{loaded.name}: a shortened copy for the self-test lacks {missing[0]}")
    model.requires_grad_(False)
    return replace(loaded, model=model, forward=TransformersForward(model), dtype=torch.float32)
