"""A forward pass of our own for Llama- and Qwen2-shaped models, written to be read.

The same arithmetic as transformers', with fewer and larger operations: query, key and value projections
as one product, gate and up as one, rotary tables worked out once, logits only where they are wanted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear
from transformers import LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM

from engine.executor.kv import KV
from engine.executor.step import Step


class Layer:
    """One layer's weights; products that read the same input are merged.

    The modules they came from keep working: their weights become views into the merged ones.
    """

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.qkv, self.qkv_bias = _merged([attention.q_proj, attention.k_proj, attention.v_proj])
        self.gate_up, self.gate_up_bias = _merged([mlp.gate_proj, mlp.up_proj])
        self.out, self.out_bias = attention.o_proj.weight, attention.o_proj.bias
        self.down, self.down_bias = mlp.down_proj.weight, mlp.down_proj.bias
        self.before_attention = layer.input_layernorm.weight
        self.before_mlp = layer.post_attention_layernorm.weight
        self.scale: float = attention.scaling
        self.activation = mlp.act_fn


class LlamaForward:
    """Runs a step through a Llama- or Qwen2-shaped model."""

    name = "own"

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config
        self.layers = [Layer(layer) for layer in model.model.layers]
        self.embedding = model.model.embed_tokens.weight
        self.last_norm = model.model.norm.weight
        self.head = model.lm_head.weight
        self.eps: float = config.rms_norm_eps
        self.heads: int = config.num_attention_heads
        self.kv_heads: int = config.num_key_value_heads
        self.width: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.cos, self.sin = self._rotary(model)

    @staticmethod
    def fits(model: PreTrainedModel) -> bool:
        """Whether this forward pass is the model's own, to the last operation."""
        return type(model) in (LlamaForCausalLM, Qwen2ForCausalLM)

    def _rotary(self, model: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor]:
        """Rotary tables [positions, width], in the model's dtype."""
        positions = torch.arange(model.config.max_position_embeddings, device=self.embedding.device)
        cos, sin = model.model.rotary_emb(self.embedding[:1], positions[None])
        return cos[0], sin[0]

    def __call__(self, step: Step, kv: KV) -> torch.Tensor:
        """Logits [n, vocabulary] at the step's sampled tokens; KV of all its tokens is written."""
        x = self.embedding[step.ids]
        cos, sin = self.cos[step.positions][:, None], self.sin[step.positions][:, None]
        for number, layer in enumerate(self.layers):
            x = x + self._attention(number, layer, _norm(x, layer.before_attention, self.eps), cos, sin, step, kv)
            gate, up = linear(_norm(x, layer.before_mlp, self.eps), layer.gate_up, layer.gate_up_bias).chunk(2, -1)
            x = x + linear(layer.activation(gate) * up, layer.down, layer.down_bias)
        return linear(_norm(x[step.sampled], self.last_norm, self.eps), self.head)

    def _attention(
        self, number: int, layer: Layer, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, step: Step, kv: KV
    ) -> torch.Tensor:
        """x [T, hidden] -> [T, hidden]."""
        turned = self.heads + self.kv_heads
        qkv = linear(x, layer.qkv, layer.qkv_bias).view(len(x), -1, self.width)
        qk = _rotate(qkv[:, :turned], cos, sin)
        seen = kv.attend(number, qk[:, : self.heads], qk[:, self.heads :], qkv[:, turned:], layer.scale, step)
        return linear(seen.reshape(len(x), -1), layer.out, layer.out_bias)


def _merged(parts: list[torch.nn.Linear]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The weights (and biases) of several projections of one input, one below the other."""
    weight = torch.cat([p.weight.data for p in parts])
    for part, piece in zip(parts, torch.split(weight, [p.out_features for p in parts]), strict=True):
        part.weight.data = piece
    return weight, None if parts[0].bias is None else torch.cat([p.bias.data for p in parts])


def _norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Root-mean-square norm, in float32 as transformers does it."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding: x [T, heads, width], cos and sin [T, 1, width]."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
