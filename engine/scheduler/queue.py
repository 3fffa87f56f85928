"""The waiting queue: in order of arrival, a retracted request at the back or at the front."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

from engine.request import Request


class Watcher(Protocol):
    """Told of everyone who joins and leaves; what a policy with an index of its own needs."""

    def joined(self, request: Request) -> None: ...
    def left(self, request: Request) -> None: ...


class Queue:
    """Joining at either end and leaving from anywhere take constant time.

    `Request.seat` rises along the queue: it breaks every policy's ties.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[Request, None] = OrderedDict()
        self._never_served: OrderedDict[Request, None] = OrderedDict()
        self._next_seat = 0
        self._first_seat = 0
        self.watcher: Watcher | None = None

    def join(self, request: Request, front: bool = False) -> None:
        """Wait at the back, or at the front."""
        if front:
            self._first_seat -= 1
            request.seat = self._first_seat
        else:
            request.seat = self._next_seat
            self._next_seat += 1
        self._waiting[request] = None
        if front:
            self._waiting.move_to_end(request, last=False)
        if request.cached is None:
            self._never_served[request] = None
        if self.watcher:
            self.watcher.joined(request)

    def remove(self, request: Request) -> None:
        """Leave the queue. Raises KeyError for one that does not wait."""
        del self._waiting[request]
        self._never_served.pop(request, None)
        if self.watcher:
            self.watcher.left(request)

    @property
    def oldest(self) -> Request | None:
        """The earliest arrival that was never admitted."""
        return next(iter(self._never_served), None)

    def __iter__(self) -> Iterator[Request]:
        return iter(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, request: Request) -> bool:
        return request in self._waiting
