"""Faults of a request's life: its pages, its tokens, its end."""

from __future__ import annotations

from typing import Any

from tests.mutations.registry import mutation, swap, wrap


@mutation
def forgets_to_unlock_on_abort() -> None:
    from engine.engine import Engine

    def abort(right: Any, self: Any, request: str) -> bool:
        self.cache.release = lambda *_: None
        try:
            return bool(right(self, request))
        finally:
            del self.cache.release

    wrap(Engine, "abort", abort)


@mutation
def lets_a_prompt_be_found_before_it_is_computed() -> None:
    from engine.scheduler.admission import Admission

    def start(right: Any, self: Any, request: Any, *rest: Any) -> None:
        right(self, request, *rest)
        kv, request.kv = request.kv, request.target
        self.holdings.share(request)
        request.kv = kv

    wrap(Admission, "_start", start)


@mutation
def looks_up_the_last_token_too() -> None:
    from engine.request import Request

    swap(Request, "packed_but_last", lambda self: self.packed(self.size))


@mutation
def stores_the_last_sampled_token() -> None:
    from engine.scheduler.holdings import Holdings

    def finish(right: Any, self: Any, request: Any) -> None:
        if request.output and request.kv < request.size and request.pages:
            if request.kv >= len(request.pages) * self.pool.page_size and self.obtainable:
                self.take([(request, 1)])
            request.kv = min(request.kv + 1, len(request.pages) * self.pool.page_size)
        right(self, request)

    wrap(Holdings, "finish", finish)


@mutation
def loses_the_token_that_a_resumed_prefill_sampled() -> None:
    from engine.outcomes import Outcomes

    def after(right: Any, self: Any, taken: Any) -> Any:
        progress, row = right(self, taken), taken.row
        if row.request.retractions and row.start < row.request.target:
            progress.ids = []
        return progress

    wrap(Outcomes, "_after", after)


@mutation
def keeps_a_retracted_requests_pages() -> None:
    from engine.scheduler.holdings import Holdings

    def drop(_: Any, self: Any, request: Any) -> int:
        self.cache.release(request.node, request)
        request.node, request.pages, request.shared, request.kv = None, [], 0, 0
        return 0

    wrap(Holdings, "drop", drop)


@mutation
def resumes_where_the_request_was_retracted() -> None:
    from engine.scheduler.scheduler import Scheduler

    def prefill(right: Any, self: Any, request: Any, count: int) -> Any:
        if request.retractions and request.kv < request.reached - 1:
            request.kv += 1
            count -= 1
        return right(self, request, count)

    wrap(Scheduler, "_prefill", prefill)


@mutation
def stores_what_was_not_to_be_stored() -> None:
    from engine.scheduler.holdings import Holdings

    def finish(right: Any, self: Any, request: Any) -> None:
        request.store = True
        right(self, request)

    wrap(Holdings, "finish", finish)


@mutation
def begins_a_chat_without_the_begin_marker() -> None:
    from engine.tokenizer import TextTokenizer

    def chat(right: Any, self: Any, messages: Any) -> list[int]:
        adds, self._adds_begin = self._adds_begin, False
        try:
            return list(right(self, messages))
        finally:
            self._adds_begin = adds

    wrap(TextTokenizer, "chat", chat)


@mutation
def forgets_what_a_placeholder_stands_for() -> None:
    from engine.request import Request

    swap(Request, "keyed", lambda self, start, stop: self.tokens[start:stop])
