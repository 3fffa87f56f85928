"""The page pool: which page ids are free. No tensors, no owners: those are found by walking their holders."""

from __future__ import annotations

from collections.abc import Sequence


class PoolError(RuntimeError):
    """A page was freed that nobody holds, freed twice, or more pages were taken than are free."""


class Pool:
    """Page ids 0 ... pages-1. Freed pages are handed out again last in, first out."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.pages = pages
        self.page_size = page_size
        self._free = list(range(pages - 1, -1, -1))
        self._held: set[int] = set()

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """Take `count` pages. Raises PoolError when fewer are free."""
        if count > len(self._free):
            raise PoolError(f"asked for {count} pages, {len(self._free)} are free")
        if count == 0:
            return []
        taken = self._free[-count:]
        taken.reverse()
        del self._free[-count:]
        self._held.update(taken)
        return taken

    def give_back(self, pages: Sequence[int]) -> None:
        """Return pages. Raises PoolError when one of them is not held, or named twice."""
        if not pages:
            return
        unique = set(pages)
        if len(unique) != len(pages) or not unique <= self._held:
            wrong = sorted(unique - self._held) or sorted(p for p in unique if list(pages).count(p) > 1)
            raise PoolError(f"pages freed twice: {wrong[:8]}")
        self._held -= unique
        self._free.extend(reversed(pages))

    def pages_for(self, tokens: int) -> int:
        """Pages that `tokens` token slots need, rounded up."""
        return -(-tokens // self.page_size)

    def free_pages(self) -> list[int]:
        """The free page ids, next to be handed out first."""
        return self._free[::-1]
