"""What the radix tree costs: look-ups, holds, evictions and insertions a second, beside SGLang's trees.

`python benchmarks/cache_ops.py [--repeats 5] [--only burst]`

Traffic: a burst of 64 passages of 2,048 tokens with 16 questions of 32 each, grouped and shuffled, into
16,384 tokens; and 2,000 turns of growing chats into 65,536. Each request looks its tokens up, gathers the
pages it found, holds them, evicts what is short (whole leaves, as SGLang does), stores the whole sequence,
and lets go. Tokens are packed before the clock starts, for each tree in the form that it takes. Every tree runs in
every repeat, in turn; of each request's parts the best time counts, since the same request does the same work in
each. All have to find and to evict the same tokens. SGLang splits a node while it matches, this tree while it
holds, hence the column of both.

SGLang's trees are imported where its wheel is installed (`pip install --no-deps sglang` will do): its Python
tree from its own files with the rest of the package left out, its Rust tree where the wheel brings one for
this Python. Without the wheel only this tree is timed, and the script says so.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import random
import sys
import time
import types
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine import events as ev
from engine.cache.base import pack
from engine.cache.radix import RadixCache

PARTS = ("match", "gather", "hold", "evict", "insert", "release")


# --- traffic -----------------------------------------------------------------------------------


def tokens(chance: random.Random, count: int) -> list[int]:
    """Random ids of a usual vocabulary."""
    return [chance.randrange(100, 49_000) for _ in range(count)]


def burst(shuffled: bool) -> list[list[int]]:
    """64 passages of 2,048 tokens, 16 questions of 32 on each."""
    chance = random.Random(1)
    prompts = []
    for _ in range(64):
        passage = tokens(chance, 2048)
        prompts += [passage + tokens(chance, 32) for _ in range(16)]
    if shuffled:
        random.Random(2).shuffle(prompts)
    return prompts


def chats(turns: int = 2000, open: int = 12) -> list[list[int]]:
    """Turns of chats that grow by 300 to 500 tokens up to some 7,700, a dozen open at a time."""
    chance = random.Random(3)
    chats: list[list[int]] = [[] for _ in range(open)]
    prompts = []
    for _ in range(turns):
        i = chance.randrange(open)
        chats[i] = chats[i] + tokens(chance, chance.randrange(300, 501))
        prompts.append(chats[i])
        if len(chats[i]) > 7700:
            chats[i] = []
    return prompts


TRAFFIC: dict[str, tuple[Callable[[], list[list[int]]], int]] = {
    "burst, grouped": (lambda: burst(shuffled=False), 16_384),
    "burst, shuffled": (lambda: burst(shuffled=True), 16_384),
    "2,000 turns of growing chats": (chats, 65_536),
}


# --- this project's tree -----------------------------------------------------------------------


@dataclass
class Asker:
    """What the tree needs to know of a request."""

    id: str = "R"
    priority: int = 0
    cached: int | None = None
    node: Any = None
    prompt: list[int] = field(default_factory=list)


class Ours:
    """This tree: its events off, told to a listener, or told and kept in memory (where Python's collector minds them)."""

    packed = staticmethod(pack)

    def __init__(self, page: int, events: str) -> None:
        self.page = page
        self.trace = ev.Trace(keep=events == "kept", sinks=[lambda events: None] if events == "told" else [])
        self.tree = RadixCache(page, unit="leaf", trace=self.trace)
        self.spare = list(range(20_000))

    def match(self, key: bytes) -> tuple[int, Any]:
        match = self.tree.match(key)
        return match.length, match

    def gather(self, match: Any) -> Any:
        return match.pages

    def hold(self, match: Any) -> Any:
        asker = Asker()
        asker.node = self.tree.acquire(match, asker).node
        return asker

    def evict(self, count: int) -> int:
        return sum(e.tokens for e in self.tree.evict(-(-count // self.page)))

    def table(self, pages: list[int], count: int) -> Any:
        return pages + self.spare[: count - len(pages)]

    def insert(self, key: bytes, table: list[int], asker: Asker) -> int:
        return len(table) * self.page - self.tree.insert(key, table, None, asker).already_there

    def release(self, asker: Asker) -> None:
        self.tree.release(asker.node, asker)
        self.trace.commit()


# --- SGLang's trees ----------------------------------------------------------------------------


def sglang_folder() -> Path | None:
    """Where SGLang is installed; None where it is not."""
    spec = importlib.util.find_spec("sglang")
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) if places else None


TREE_FILES = ("radix_cache", "cache_init_params", "base_prefix_cache", "evict_policy", "utils", "events")


class Nothing(type):
    """Whatever is asked of what was left out is left out too."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __call__(cls, *args: Any, **named: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else cls


class LeftOut(types.ModuleType):
    """A module of the package that the tree does not need."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing("Nothing", (), {})


class OnlyTheTree(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the tree's own files in the wheel, and `LeftOut` for every other module of the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.split(".")[0] != "sglang":
            return None
        home, _, last = name.rpartition(".")
        if home == "sglang.srt.mem_cache" and last in TREE_FILES:
            return importlib.util.spec_from_file_location(name, self.folder / "srt" / "mem_cache" / f"{last}.py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return LeftOut(spec.name)

    def exec_module(self, module: Any) -> None:
        module.__path__ = []


class Allocator:
    """Takes pages back."""

    device = "cpu"

    def free_segment(self, value: Any, start_pos: int = 0) -> None:
        pass


class SglangPython:
    """SGLang's `RadixCache`."""

    @staticmethod
    def packed(prompt: list[int]) -> Any:
        return array("q", prompt)

    def __init__(self, page: int, module: Any, base: Any, slots: Any) -> None:
        self.module, self.base, self.page, self.slots = module, base, page, slots
        self.tree = module.RadixCache.create_simulated(mock_allocator=Allocator(), page_size=page)
        self.tree.update_eviction_metrics = lambda *args, **named: None

    def match(self, key: Any) -> tuple[int, Any]:
        found = self.tree.match_prefix(self.base.MatchPrefixParams(key=self.module.RadixKey(key)))
        return found.device_prefix_len, found.last_device_node

    def gather(self, node: Any) -> Any:
        return self.tree.path_device_indices(node)

    def hold(self, node: Any) -> Any:
        self.tree.inc_lock_ref(node)
        return node

    def evict(self, count: int) -> int:
        return int(self.tree.evict(self.base.EvictParams(num_tokens=count)).num_tokens_evicted)

    def table(self, pages: Any, count: int) -> Any:
        return self.slots[: count * self.page]

    def insert(self, key: Any, table: Any, node: Any) -> int:
        params = self.base.InsertParams(key=self.module.RadixKey(key), value=table)
        return len(key) // self.page * self.page - int(self.tree.insert(params).prefix_len)

    def release(self, node: Any) -> None:
        self.tree.dec_lock_ref(node)


class SglangRust:
    """SGLang's Rust tree by its bare binding."""

    packed = staticmethod(SglangPython.packed)

    def __init__(self, page: int, module: Any, slots: Any) -> None:
        self.module, self.page, self.slots = module, page, slots
        params = module.TreeCoreInitParamsBinding(eviction_policy="lru", page_size=page, device="cpu")
        self.tree = module.RustUnifiedTreeCoreBinding(params, [0])
        self.root = self.tree.root_node_handle()

    def match(self, key: Any) -> tuple[int, Any]:
        found = self.tree.match_prefix(self.module.MatchParamsBinding(key=key))
        return found.device_prefix_len, found.last_device_node_id

    def gather(self, node: Any) -> Any:
        return self.tree.collect_full_device_indices(node, self.root)

    def hold(self, node: Any) -> Any:
        held = self.tree.inc_lock_ref(node)
        return node, self.module.DecLockRefParamsBinding(
            node_id=held.node_id, skipped_lock_components=held.skipped_lock_components,
            component_lock_uuids=held.component_lock_uuids, component_host_lock_uuids=held.component_host_lock_uuids,
        )  # fmt: skip

    def evict(self, count: int) -> int:
        freed = 0
        tracker = {0: 0}
        self.tree.evict_device_start(0, count)
        while freed < count:
            step = self.tree.evict_device_next_node(0, tracker)
            freed += step.tracker.get(0, 0)
            if step.node_id is not None:
                freed += self.tree.evict_device_leaf(step.node_id).tracker.get(0, 0)
            elif not step.made_progress:
                break
            tracker[0] = freed
        self.tree.evict_device_end(0)
        return freed

    def table(self, pages: Any, count: int) -> Any:
        return self.slots[: count * self.page]

    def insert(self, key: Any, table: Any, held: Any) -> int:
        whole = len(table)
        key = key if whole == len(key) else key[:whole]
        return whole - int(self.tree.insert(self.module.InsertParamsBinding(key=key, value=table)).prefix_len)

    def release(self, held: Any) -> None:
        self.tree.dec_lock_ref(*held)


def peers() -> dict[str, Callable[[int], Any]]:
    """SGLang's trees, as far as they can be had here."""
    folder = sglang_folder()
    if folder is None:
        print("SGLang is not installed here: only this tree is timed.")
        return {}
    import torch  # SGLang's trees hold tensors

    torch.set_num_threads(1)
    slots = torch.arange(20_000)
    found: dict[str, Callable[[int], Any]] = {}
    sys.meta_path.insert(0, OnlyTheTree(folder))
    common = importlib.import_module("sglang.srt.utils.common")
    common.ceil_align = lambda x, a: (x + a - 1) // a * a  # type: ignore[attr-defined]
    module = importlib.import_module("sglang.srt.mem_cache.radix_cache")
    base = importlib.import_module("sglang.srt.mem_cache.base_prefix_cache")
    found["SGLang, Python"] = lambda page: SglangPython(page, module, base, slots)
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        library = folder / "srt" / "mem_cache" / "rust_tree_core" / f"mem_cache{suffix}"
        if library.exists():
            spec = importlib.util.spec_from_file_location("mem_cache", library)
            assert spec is not None and spec.loader is not None
            rust = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(rust)
            found["SGLang, Rust"] = lambda page, rust=rust: SglangRust(page, rust, slots)
            break
    return found


# --- the run -----------------------------------------------------------------------------------


@dataclass
class Cost:
    """Seconds of each request by part, and what was found and evicted."""

    parts: dict[str, list[float]]
    found: int
    evicted: int

    def best(self, other: Cost) -> None:
        """Keep the better time of each request's parts: what else the machine does meanwhile falls out."""
        assert (self.found, self.evicted) == (other.found, other.evicted)
        for part, times in self.parts.items():
            times[:] = map(min, times, other.parts[part])


def drive(tree: Any, keys: list[Any], lengths: list[int], capacity: int, page: int) -> Cost:
    """Every request once, each part timed."""
    clock = time.perf_counter
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    held = found = evicted = 0
    gc.collect()
    gc.freeze()  # the traffic itself is no concern of the collector
    for key, length in zip(keys, lengths, strict=True):
        whole = length // page * page
        a = clock()
        known, handle = tree.match(key)
        b = clock()
        pages = tree.gather(handle)
        c = clock()
        lock = tree.hold(handle)
        d = clock()
        parts["match"].append(b - a)
        parts["hold"].append(d - c)
        short = held + whole - known - capacity
        if short > 0:
            a = clock()
            gone = tree.evict(short)
            parts["evict"].append(clock() - a)
            held -= gone
            evicted += gone
        e = clock()
        table = tree.table(pages, whole // page)
        a = clock()
        parts["gather"].append(c - b + a - e)
        held += tree.insert(key, table, lock)
        b = clock()
        tree.release(lock)
        parts["insert"].append(b - a)
        parts["release"].append(clock() - b)
        found += known
    gc.unfreeze()
    return Cost(parts, found, evicted)


def compare(
    name: str, prompts: list[list[int]], capacity: int, page: int, repeats: int, others: dict[str, Any]
) -> None:
    """Print one table: a row a tree."""
    trees: dict[str, Any] = {
        f"this tree, events {how}": lambda page, how=how: Ours(page, how) for how in ("off", "told", "kept")
    } | {
        **others,
    }
    lengths = [len(p) for p in prompts]
    keys: dict[Any, list[Any]] = {}
    costs: dict[str, Cost] = {}
    for _ in range(repeats):
        for label, make in trees.items():
            tree = make(page)
            if tree.packed not in keys:
                keys[tree.packed] = [tree.packed(p) for p in prompts]
            cost = drive(tree, keys[tree.packed], lengths, capacity, page)
            if label in costs:
                costs[label].best(cost)
            else:
                costs[label] = cost
    shown = costs["this tree, events off"]
    print(
        f"\n{name}, page {page}: {len(prompts):,} requests, {sum(lengths):,} tokens, {shown.found / sum(lengths):.1%} found, "
        f"{shown.evicted:,} evicted in {len(shown.parts['evict']):,} calls"
    )
    print(
        f"{'':24}{'total s':>9}   a second: " + "".join(f"{p:>11}" for p in ("match", "match+hold", "evict", "insert"))
    )
    for label, cost in costs.items():
        assert (cost.found, cost.evicted) == (shown.found, shown.evicted), "the trees do not do the same"
        spent = {part: sum(times) for part, times in cost.parts.items()}
        n = len(prompts)
        rates = [
            n / spent["match"],
            n / (spent["match"] + spent["hold"]),
            len(cost.parts["evict"]) / spent["evict"],
            n / spent["insert"],
        ]
        print(f"{label:24}{sum(spent.values()):9.4f}   {'':10}" + "".join(f"{r:11,.0f}" for r in rates))


def many_leaves(leaves: int = 20_000) -> None:
    """One eviction after another from a tree of many leaves."""
    tree = RadixCache(1, trace=ev.Trace(keep=False))
    for leaf in range(leaves):
        tree.insert(pack([7, leaf]), [0, leaf], None, Asker())
    took = []
    for turn in range(1000):
        start = time.perf_counter()
        tree.evict(1)
        took.append(time.perf_counter() - start)
        tree.insert(pack([7, leaves + turn]), [0, turn], None, Asker())
    took.sort()
    print(
        f"\none eviction among {leaves:,} leaves: median {took[500] * 1e6:.1f} us, worst of 1,000 {took[-1] * 1e6:.0f} us"
    )


def main() -> None:
    """Time every tree on every traffic."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="traffic whose name has this in it")
    args = parser.parse_args()
    others = peers()
    for name, (make, capacity) in TRAFFIC.items():
        if args.only in name:
            prompts = make()
            for page in (1, 16):
                compare(name, prompts, capacity, page, args.repeats, others)
    many_leaves()


if __name__ == "__main__":
    main()
