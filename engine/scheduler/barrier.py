"""`in_batch: barrier`: whoever could reuse what an admitted request is computing right now waits for it.

Two rules, both of which pass a request over and block nobody behind it: its next whole page is in flight, or
the step's new prefixes (of its leaders) would not fit in the tree together and push each other out.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.cache.base import WIDTH
from engine.config import EngineConfig
from engine.request import Request, Status


class Barrier:
    """One step's view: what is in flight and how much room the leaders have taken.

    `known`: tokens that a request would not compute.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.on = config.in_batch == "barrier" and config.cache != "off"
        self._page = config.page_size
        self._room = config.pages if config.cache_pages is None else config.cache_pages
        self._led = 0
        self._held: list[Request] = []

    def begin(self) -> None:
        """A step begins: no leader yet."""
        self._led = 0
        self._held = []

    @property
    def room(self) -> int:
        """Pages of the tree that this step's leaders have left."""
        return self._room - self._led

    def in_flight(self, request: Request, known: int, running: Iterable[Request]) -> Request | None:
        """The admitted request that is computing this one's next whole page."""
        return self._sharing(request, known, (r for r in running if r.status is Status.PREFILL)) if self.on else None

    def held(self, request: Request, known: int) -> bool:
        """Whether its new pages are too many for this step; so is whoever shares their first page."""
        if not self.on:
            return False
        pages = self.new_pages(request, known)
        if not pages or not self._led:
            return False
        if pages <= self.room and self._sharing(request, known, self._held) is None:
            return False
        self._held.append(request)
        return True

    def admitted(self, request: Request, known: int) -> None:
        """A leader took its room."""
        self._led += self.new_pages(request, known)

    def new_pages(self, request: Request, known: int) -> int:
        """Whole pages of its prompt that are to be computed and kept."""
        return max(0, len(request.prompt) - known) // self._page if request.store else 0

    def _sharing(self, request: Request, known: int, others: Iterable[Request]) -> Request | None:
        """The first of the others that goes through the page after what this one knows, and stores it."""
        stop = known + self._page
        start = request.packed_but_last()[: stop * WIDTH]
        if len(start) < stop * WIDTH:
            return None
        for other in others:
            # A waiting one's prompt is still its size; a running one computes up to its target.
            reach = other.target if other.status is Status.PREFILL else other.size
            if other.store and reach >= stop and other.namespace == request.namespace and other.begins_with(start):
                return other
        return None
