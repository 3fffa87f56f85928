"""What may be asked of an engine: each check raises SubmitError naming the field and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

from engine.events import Namespace

SCORED = 1024
"""Most tokens of a prompt that are scored: each needs the logits of the whole vocabulary."""


class SubmitError(ValueError):
    """A request that cannot be taken; one sentence naming the field and what is allowed."""


def check_ids(prompt: Any, vocabulary: int) -> list[int]:
    """The prompt as a list of token ids."""
    if isinstance(prompt, (bytes, bytearray, Mapping, Set)) or not isinstance(prompt, Iterable):
        raise SubmitError(f"prompt: must be a text or a list of token ids; got {type(prompt).__name__}")
    ids = list(prompt)
    if not ids:
        raise SubmitError("prompt: is empty; at least one token is needed")
    for token in ids:
        if not _whole(token) or not 0 <= token < vocabulary:
            raise SubmitError(f"prompt: token ids must be integers from 0 to {vocabulary - 1}; got {token!r}")
    return ids


def check_times(at: Any, at_step: Any, after: Any, think: Any, abort_at_step: Any, fail_at_step: Any) -> None:
    """When a request arrives, is taken back, or is made to fail."""
    given = [k for k, v in (("at", at), ("at_step", at_step), ("after", after)) if v is not None]
    if len(given) > 1:
        raise SubmitError(f"{given[0]}: give at most one of at, at_step, after; got {', '.join(given)}")
    seconds: dict[str, Any] = {"at": at, "think": think}
    for field, value in seconds.items():
        if value is None and field == "at":
            continue
        if not (_whole(value) or isinstance(value, float)) or not 0 <= value < math.inf:
            raise SubmitError(f"{field}: must be seconds, 0 or more; got {value!r}")
    if after is not None and not isinstance(after, str):
        raise SubmitError(f"after: must be the id of another request; got {after!r}")
    steps: dict[str, Any] = {"at_step": at_step, "abort_at_step": abort_at_step, "fail_at_step": fail_at_step}
    for field, value in steps.items():
        least = 0 if field == "at_step" else 1
        if value is not None and (not _whole(value) or value < least):
            raise SubmitError(f"{field}: must be an integer, {least} or more; got {value!r}")


def check_facts(priority: Any, store: Any, label: Any, pin: Any) -> None:
    """What else a request says of itself."""
    if not _whole(priority):
        raise SubmitError(f"priority: must be an integer; got {priority!r}")
    if not isinstance(store, bool):
        raise SubmitError(f"store: must be true or false; got {store!r}")
    if label is not None and not isinstance(label, str):
        raise SubmitError(f"label: must be a text; got {label!r}")
    if not _whole(pin) or pin < 0:
        raise SubmitError(f"pin: must be a number of steps, 0 or more; got {pin!r}")
    if pin and not store:
        raise SubmitError("pin: holds what the request stores, and store is false; leave one of them out")


def namespace_of(given: Any) -> Namespace | None:
    """Salt, adapter and content as a tuple; None where all three are."""
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 3 or not all(p is None or isinstance(p, str) for p in given):
        raise SubmitError(f"namespace: must be (salt, adapter, content), each a text or None; got {given!r}")
    salt, adapter, content = given
    return None if salt is adapter is content is None else (salt, adapter, content)


def check_content(content_at: Any, namespace: Namespace | None, prompt: int) -> None:
    """Where the content of a namespace begins, in a prompt of so many tokens."""
    if not _whole(content_at) or not 0 <= content_at < prompt:
        raise SubmitError(f"content_at: must be a token of the prompt, 0 to {prompt - 1}; got {content_at!r}")
    if content_at and (namespace is None or namespace[2] is None):
        raise SubmitError("content_at: says where content begins, and there is none; give content as well")


def check_score(score_from: int | None, prompt: int) -> None:
    """From which token on a prompt of so many tokens is scored."""
    if score_from is None:
        return
    if not max(1, prompt - SCORED) <= score_from < prompt:
        few = f" (at most the last {SCORED} tokens)" if prompt > SCORED else ""
        raise SubmitError(
            f"score_from: must be a token of the prompt after its first, {max(1, prompt - SCORED)} to {prompt - 1}{few}; got {score_from}"
            if prompt > 1 else "score_from: the prompt has one token, and nothing stands before it to say how likely it is"
        )


def check_says(says: Any, vocabulary: int) -> None:
    """A puppet's script: token ids, or rankings of them."""
    if says is None:
        return
    items: list[Any] = list(says) if isinstance(says, (list, tuple)) else [None]
    for item in items:
        ranking: list[Any] = list(item) if isinstance(item, (list, tuple)) else [item]
        if not ranking or not all(_whole(i) and 0 <= i < vocabulary for i in ranking):
            raise SubmitError(f"says: must list token ids from 0 to {vocabulary - 1}, or rankings of them; got {item!r}")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
