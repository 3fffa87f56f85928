"""Faults of the caches: what is kept, found, held and evicted."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, swap, wrap


@mutation
def frees_the_trees_page_instead_of_the_duplicate() -> None:
    from engine.cache.radix import RadixCache

    def duplicates(right: Any, self: Any, path: Any, inside: int, pages: Any, request: Any) -> list[int]:
        mine = right(self, path, inside, pages, request)
        held = [p for node in path for p in node.pages]
        return [held[list(pages).index(p)] for p in mine]

    wrap(RadixCache, "_duplicates", duplicates)


@mutation
def locks_the_node_without_its_ancestors() -> None:
    from engine.cache.radix import RadixCache

    def above(self: Any, node: Any, locks: int) -> None:
        at = node.parent if node is not None else self.root
        while at is not self.root:
            at.locks += locks
            self._locked += locks * len(at.pages) if at.locks == max(locks, 0) else 0
            at = at.parent

    def acquire(right: Any, self: Any, match: Any, request: Any) -> Any:
        held = right(self, match, request)
        above(self, held.node, -1)
        return held

    def release(right: Any, self: Any, node: Any, request: Any) -> None:
        above(self, node, 1)
        right(self, node, request)

    wrap(RadixCache, "acquire", acquire)
    wrap(RadixCache, "release", release)


@mutation
def splits_with_the_tails_pages_on_the_front() -> None:
    from engine.cache.radix import RadixCache

    def split(right: Any, self: Any, node: Any, at: int) -> Any:
        pages, k = node.pages, at // self.page_size
        front = right(self, node, at)
        front.pages, node.pages = pages[-k:], pages[:-k]
        return front

    wrap(RadixCache, "_split", split)


@mutation
def evicts_a_parent_before_its_child() -> None:
    from engine.cache.eviction import EvictionQueue

    def pop(right: Any, self: Any) -> Any:
        node = right(self)
        if node is not None and node.parent.id and not (node.parent.locks or node.parent.removed):
            self.push(node)
            return node.parent
        return node

    wrap(EvictionQueue, "pop", pop)
    swap(EvictionQueue, "head", lambda self, count: [])


@mutation
def evicts_what_a_request_holds() -> None:
    from engine.cache.radix import Node

    swap(Node, "evictable", property(lambda self: not (self.children or self.removed)))


@mutation
def drops_the_namespace_from_the_key() -> None:
    from engine.cache.radix import RadixCache

    wrap(RadixCache, "_key", lambda right, self, tokens, ns: right(self, tokens, None))


@mutation
def counts_a_prompts_cached_pages_as_needed() -> None:
    from engine.cache.radix import RadixCache

    wrap(RadixCache, "to_lock", lambda right, self, match: match.length // self.page_size)


@mutation
def evicts_what_is_pinned() -> None:
    from engine.cache.node import Node

    swap(Node, "evictable", property(lambda self: not (self.locks or self.children or self.removed)))


@mutation
def takes_the_nearest_next_use_for_the_farthest() -> None:
    from engine.cache.future import Future

    wrap(Future, "key", lambda right, self, node: (-right(self, node)[0],))


@mutation
def queues_a_chain_of_blocks_from_its_head() -> None:
    from engine.cache.blocks import BlockCache

    wrap(BlockCache, "_queue", lambda right, self, path: right(self, path[::-1]))


@mutation
def takes_blocks_of_one_hash_for_equal() -> None:
    from engine.cache.blocks import BlockCache

    def descend(_: Any, self: Any, tokens: bytes, ns: Any) -> list[Any]:
        path: list[Any] = []
        above, size = ns, self._page_bytes
        for at in range(0, len(tokens) - size + 1, size):
            above = self._hash(above, tokens[at : at + size])
            found = self._table.get(above)
            if not found:
                break
            path.append(found[0])
        return path

    wrap(BlockCache, "_descend", descend)
