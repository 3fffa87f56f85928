"""Faults of the host tier: what is copied, kept, guarded and weighed."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, swap, wrap


@mutation
def gives_the_hosts_pages_back_while_the_node_stays() -> None:
    from engine.cache.tiered import TieredCache

    def demote(right: Any, self: Any, node: Any, pages: int) -> Any:
        gone = right(self, node, pages)
        self.host.pool.give_back(node.host)
        return gone

    wrap(TieredCache, "_demote", demote)


@mutation
def loads_pages_without_copying_them() -> None:
    from engine.executor.puppet import PuppetExecutor

    swap(PuppetExecutor, "restore", lambda self, host_pages, pages: None)


@mutation
def copies_a_page_to_its_neighbours_place_on_the_host() -> None:
    from engine.executor.puppet import PuppetExecutor

    wrap(PuppetExecutor, "demote", lambda right, self, pages, host_pages: right(self, pages, [*host_pages[1:], host_pages[0]]))


@mutation
def lets_what_is_about_to_be_loaded_leave_the_host() -> None:
    from engine.cache.host import HostTier

    swap(HostTier, "guard", lambda self, nodes: None)


@mutation
def evicts_what_lies_above_a_load_to_make_room_for_it() -> None:
    from engine.cache.tiered import TieredCache

    swap(TieredCache, "_lock", lambda self, match, request, change: None)


@mutation
def takes_the_link_for_free_whatever_is_on_it() -> None:
    from engine.scheduler.loading import Loading

    swap(Loading, "started", lambda self, choice: None)


@mutation
def leaves_what_continues_an_evicted_node_on_the_host() -> None:
    from engine.cache.radix import RadixCache
    from engine.cache.tiered import TieredCache

    swap(TieredCache, "_drop", lambda self, node, pages: RadixCache._trim(self, node, pages))
