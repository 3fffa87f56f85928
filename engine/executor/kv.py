"""The KV tensors: for each layer, slots of keys and values; and attention that reads them by page."""

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention

from engine.executor.step import DecodeGroup, PrefillRow, Step


class KV:
    """Keys and values of every layer: `layers[l]` is [slots, 2, kv_heads, head_dim].

    Slot = page x page_size + offset. `fill` is what unused slots hold (finite: a masked slot weighs
    exactly 0, but 0 x inf is not a number). `plain` avoids the fused kernels: slower, for devices whose
    kernels fail the self-test.
    """

    def __init__(
        self, layers: int, pages: int, page_size: int, kv_heads: int, head_dim: int,
        dtype: torch.dtype, device: torch.device, fill: float = 0.0, plain: bool = False,
    ) -> None:  # fmt: skip
        self.page_size = page_size
        self.plain = plain
        shape = (pages * page_size, 2, kv_heads, head_dim)
        self.layers = [torch.full(shape, fill, dtype=dtype, device=device) for _ in range(layers)]

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, step: Step
    ) -> torch.Tensor:
        """Store a step's keys and values, then attend: each token sees its row up to itself.

        q [T, heads, head_dim]; k, v [T, kv_heads, head_dim]; returns [T, heads, head_dim].
        """
        self.layers[layer].index_copy_(0, step.slots, torch.stack((k, v), 1))
        if len(step.decodes) == 1 and not step.prefills:
            return self._decode(layer, q, scale, step.decodes[0])
        out = torch.empty_like(q)
        for row in step.prefills:
            here = slice(row.start, row.stop)
            if row.pages is None:
                out[here] = self._whole(q[here], k[here], v[here], scale)
            else:
                self._suffix(layer, q, scale, row, out)
        for group in step.decodes:
            here = slice(group.start, group.stop)
            out[here] = self._decode(layer, q[here], scale, group)
        return out

    def gather(self, layer: int, pages: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of pages [n], each as [n x page_size, kv_heads, head_dim]."""
        slots, _, heads, width = self.layers[layer].shape
        by_page = self.layers[layer].view(slots // self.page_size, -1)
        found = by_page.index_select(0, pages).view(-1, 2, heads, width)
        return found[:, 0], found[:, 1]

    def _whole(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
        """A row from its start: q [n, heads, d] on k, v [n, kv_heads, d], causal."""
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        if self.plain:
            n = q.shape[2]
            after = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
            mask = torch.zeros(n, n, dtype=q.dtype, device=q.device).masked_fill_(after, -torch.inf)
            out = plain_attention(q, *_repeat(k, v, q.shape[1]), mask, scale)
        else:
            out = scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=q.shape[1] != k.shape[1])
        return out[0].transpose(0, 1)

    def _suffix(self, layer: int, q: torch.Tensor, scale: float, row: PrefillRow, out: torch.Tensor) -> None:
        """A row behind its cached prefix, block by block, into `out`."""
        assert row.pages is not None
        k, v = (x.transpose(0, 1)[None] for x in self.gather(layer, row.pages))
        kv_heads = k.shape[1]
        _, heads, width = q.shape
        each = heads // kv_heads
        for block in row.blocks:
            n = block.stop - block.start
            # The query heads that share a KV head stand below one another, so that no key is repeated.
            folded = q[block.start : block.stop].view(n, kv_heads, each, width).permute(1, 2, 0, 3)
            folded = folded.reshape(1, kv_heads, each * n, width)
            keys, values, mask = k[:, :, : block.keys], v[:, :, : block.keys], block.mask.repeat(each, 1)
            seen = self._sdpa(folded, keys, values, mask, scale)
            out[block.start : block.stop] = seen.view(kv_heads, each, n, width).permute(2, 0, 1, 3).reshape(n, heads, width)

    def _decode(self, layer: int, q: torch.Tensor, scale: float, group: DecodeGroup) -> torch.Tensor:
        """One token a row, all rows of a group as one product: q [rows, heads, d]."""
        rows, heads, width = q.shape
        k, v = self.gather(layer, group.pages.view(-1))
        k, v = (x.view(rows, -1, *x.shape[1:]).transpose(1, 2) for x in (k, v))
        folded = q.reshape(rows, k.shape[1], heads // k.shape[1], width)
        return self._sdpa(folded, k, v, group.mask, scale).reshape(rows, heads, width)

    def _sdpa(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, scale: float
    ) -> torch.Tensor:
        if self.plain:
            return plain_attention(q, k, v, mask, scale)
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)


def plain_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, scale: float
) -> torch.Tensor:
    """Attention in three plain products: q [b, h, n, d], k and v [b, h, m, d]; softmax in float32."""
    scores = torch.matmul(q.contiguous(), k.contiguous().transpose(-1, -2)) * scale
    if mask is not None:
        scores = scores + mask
    return torch.matmul(scores.softmax(-1, dtype=torch.float32).to(v.dtype), v.contiguous())


def _repeat(k: torch.Tensor, v: torch.Tensor, heads: int) -> tuple[torch.Tensor, torch.Tensor]:
    each = heads // k.shape[1]
    return k.repeat_interleave(each, 1), v.repeat_interleave(each, 1)
