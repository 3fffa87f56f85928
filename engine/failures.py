"""ModelError: why a model cannot be had, in one sentence, whatever library failed underneath."""

from __future__ import annotations

import errno


class ModelError(RuntimeError):
    """A model that cannot be fetched, read or served; the message is one sentence for the user."""


NETWORK_WORDS = ("connection", "connect to", "resolve", "timed out", "timeout", "offline", "proxy", "couldn't connect")


def model_error(error: Exception, doing: str) -> ModelError:
    """Turn what a library raised while `doing` something into a ModelError; a ModelError passes through."""
    if isinstance(error, ModelError):
        return error
    text = " ".join(str(error).split())
    if _is_full_disk(error) or "no space left" in text.lower():
        return ModelError(f"the disk is full: no room left while {doing}")
    if isinstance(error, MemoryError) or "out of memory" in text.lower() or "can't allocate memory" in text.lower():
        return ModelError(f"out of memory while {doing}: choose a smaller model, bfloat16 or fewer pages")
    if any(word in text.lower() for word in NETWORK_WORDS):
        return ModelError(f"no connection while {doing}: {_first_sentence(text)}")
    return ModelError(f"failed while {doing}: {_first_sentence(text) or type(error).__name__}")


def _is_full_disk(error: BaseException | None) -> bool:
    """Whether ENOSPC lies anywhere in the chain of causes."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        error = error.__cause__ or error.__context__
    return False


def _first_sentence(text: str) -> str:
    return text.split(". ")[0][:300].rstrip(".")
