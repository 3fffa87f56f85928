"""Machines and models as numbers, from their makers' data sheets: what the cost executor simulates.

Nothing here is fitted to anybody's published result. A peak is never reached, so one and the same efficiency is
taken for every machine, for arithmetic and for memory alike. It is an assumption, and so is the overhead.
"""

from __future__ import annotations

from dataclasses import dataclass

MEASURED = "measured"
"""The profile that is calibrated on this machine instead (`engine.calibration`)."""
EFFICIENCY = 0.6
"""Assumed for all data sheets: the share of a peak that a pass reaches."""
OVERHEAD = 0.002
"""Assumed for all data sheets: seconds a pass takes beside its work, some 400 kernel launches of 5 microseconds each."""
WIDTH = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclass(frozen=True)
class Accelerator:
    """A machine: seconds, bytes, and floating-point operations a second.

    `flops` is the dense peak in the model's type of number, `link` one way between host and device. A pass
    takes `overhead`, and `row` for each of its rows, beside its work. `kv_moves`: how often a byte of KV goes through memory; 1 where
    attention reads it in place, more where pages are gathered first.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    link: float
    source: str
    overhead: float = OVERHEAD
    row: float = 0.0
    kv_moves: float = 1.0
    efficiency: float = EFFICIENCY


@dataclass(frozen=True)
class Shape:
    """A decoder-only transformer with a gated MLP. `tied`: the LM head is the embedding."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_width: int
    intermediate: int
    vocabulary: int
    positions: int
    tied: bool
    dtype: str
    source: str

    @property
    def number_bytes(self) -> int:
        """Bytes of one weight, and of one number of KV."""
        return WIDTH[self.dtype]

    @property
    def layer_parameters(self) -> int:
        """Weights of all layers' products; every token goes through them. (Norms and biases are too few to count.)"""
        queries, keys = self.heads * self.head_width, self.kv_heads * self.head_width
        attention = self.hidden * (queries + 2 * keys) + queries * self.hidden
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def head_parameters(self) -> int:
        """Weights of the LM head."""
        return self.hidden * self.vocabulary

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights, the embedding with them."""
        return (self.layer_parameters + self.head_parameters * (1 if self.tied else 2)) * self.number_bytes

    @property
    def kv_bytes(self) -> int:
        """Bytes of one token's keys and values in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_width * self.number_bytes


@dataclass(frozen=True)
class Profile:
    """A machine with a model on it."""

    accelerator: Accelerator
    shape: Shape

    def check_room(self, pages: int, page_size: int) -> None:
        """Raise ValueError naming `pages` when their KV does not fit into the memory beside the weights."""
        machine, shape = self.accelerator, self.shape
        room = machine.memory - shape.weight_bytes
        needed = pages * page_size * shape.kv_bytes
        if needed > room:
            raise ValueError(
                f"pages: KV for {pages:,} x {page_size} tokens takes {needed / 1e9:.1f} GB; of the {machine.memory / 1e9:.1f} GB of "
                f"{machine.name} the weights of {shape.name} leave {max(room, 0) / 1e9:.1f} GB, so at most "
                f"{max(int(room // (shape.kv_bytes * page_size)), 0):,} pages fit"
            )


H100 = Accelerator(
    name="H100 SXM",
    # 1,979 TFLOP/s in bfloat16 are stated "with sparsity": half of that for dense products.
    flops=1979e12 / 2,
    bandwidth=3.35e12,
    memory=80e9,
    # PCIe Gen5 is stated as 128 GB/s, both ways together.
    link=128e9 / 2,
    source="NVIDIA H100 Tensor Core GPU data sheet (SXM5)",
)
L4 = Accelerator(
    name="L4",
    # 242 TFLOP/s in bfloat16 are stated "with sparsity".
    flops=242e12 / 2,
    bandwidth=300e9,
    memory=24e9,
    # PCIe Gen4 x16 is stated as 64 GB/s, both ways together.
    link=64e9 / 2,
    source="NVIDIA L4 Tensor Core GPU data sheet",
)
M4 = Accelerator(
    name="Apple M4",
    # Apple publishes no FLOP/s and no clock. 10 GPU cores (Apple) of 128 lanes, a fused multiply-add (2) each a clock, at
    # 1.47 GHz as system tools report it: 3.76 TFLOP/s. The same in 16 and in 32 bits.
    flops=10 * 128 * 2 * 1.47e9,
    bandwidth=120e9,
    memory=16e9,
    # Unified memory: "the link" is a copy within it, which reads and writes every byte.
    link=120e9 / 2,
    source="Apple M4 technical specifications; FLOP/s derived from 10 cores x 128 lanes x 2 x 1.47 GHz, as Apple states none",
)

LLAMA_8B = Shape(
    name="Llama-3.1-8B", layers=32, hidden=4096, heads=32, kv_heads=8, head_width=128, intermediate=14336,
    vocabulary=128_256, positions=131_072, tied=False, dtype="bfloat16", source="config.json of meta-llama/Llama-3.1-8B",
)  # fmt: skip
QWEN_1_5B = Shape(
    name="Qwen2.5-1.5B", layers=28, hidden=1536, heads=12, kv_heads=2, head_width=128, intermediate=8960,
    vocabulary=151_936, positions=32_768, tied=True, dtype="bfloat16", source="config.json of Qwen/Qwen2.5-1.5B-Instruct",
)  # fmt: skip

PROFILES = {
    "h100-llama-3.1-8b": Profile(H100, LLAMA_8B),
    "l4-llama-3.1-8b": Profile(L4, LLAMA_8B),
    "m4-qwen2.5-1.5b": Profile(M4, QWEN_1_5B),
}
"""By the names that `hardware` takes."""


def check_hardware(name: str) -> str:
    """A name that `hardware` takes. Raises ValueError."""
    if name != MEASURED and name not in PROFILES:
        raise ValueError(f"must be {MEASURED} (this machine, calibrated) or one of {', '.join(PROFILES)}; got {name!r}")
    return name
