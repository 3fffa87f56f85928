"""Write assets/probe/answers.jsonl: what this project's engine finds, put into the response formats that SGLang and vLLM publish.

No real server is asked. Formats as in their sources: sglang `entrypoints/openai/usage_processor.py` (no details where the count is zero),
vllm `entrypoints/openai/completion/serving.py` (details only with --enable-prompt-tokens-details, zero told as zero).
"""

from __future__ import annotations

import json
from typing import Any

from workbench.presets import assets
from workbench.runner import run
from workbench.scenario import parse

ABOUT = (
    "Written for lesson 12 of this project by its own engine, in the response formats that SGLang and vLLM publish. "
    "No real server was asked; ids, times and model names are made up."
)
GROWN, REPEATED, FILLERS, BLOCK, ROOM = 56, 64, 9, 16, 24
"""Words of the longest growing prompt, of the one that comes again, most fillers, tokens of a block, blocks of the pool."""


def ids(first: int, words: int) -> list[int]:
    """A start token, then one token a word; prompts with another `first` share the start token alone."""
    return [1, *range(1000 * first + 10, 1000 * first + 10 + words)]


def found(engine: dict[str, Any], prompts: list[list[int]]) -> list[int]:
    """Tokens found of each prompt, one after the other."""
    asked = [{"id": f"R{i}", "tokens": p, "max_new_tokens": 1, **({"after": f"R{i - 1}"} if i else {})} for i, p in enumerate(prompts)]
    report = run(parse({"name": "probe", "engine": {"executor": "puppet", **engine}, "requests": asked}), check=True).report
    return [r.cached_tokens or 0 for r in report.requests]


def sglang(number: int, tokens: int, cached: int) -> dict[str, Any]:
    """An answer of /v1/completions, with --enable-cache-report."""
    return {
        "id": f"{number:032x}", "object": "text_completion", "created": 1767600000 + number, "model": "made-up-1b",
        "choices": [{"index": 0, "text": " and", "logprobs": None, "finish_reason": "length", "matched_stop": None}],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens + 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": cached} if cached else None},
    }  # fmt: skip


def vllm(number: int, tokens: int, cached: int | None) -> dict[str, Any]:
    """An answer of /v1/completions; `cached` None: without --enable-prompt-tokens-details."""
    return {
        "id": f"cmpl-{number:032x}", "object": "text_completion", "created": 1767600000 + number, "model": "made-up-1b",
        "choices": [{"index": 0, "text": " and", "logprobs": None, "finish_reason": "length", "stop_reason": None, "prompt_logprobs": None}],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens + 1, "completion_tokens": 1, "prompt_tokens_details": None if cached is None else {"cached_tokens": cached}},
    }  # fmt: skip


def main() -> None:
    """Write the file."""
    out: list[dict[str, Any]] = [{"about": ABOUT}]
    growing = [ids(1, words) for words in range(1, GROWN + 1)]
    blocks = {"cache": "blocks", "page_size": BLOCK}

    def record(server: str, words: int, fillers: int | None, answer: dict[str, Any]) -> None:
        out.append({"server": server, "words": words, "fillers": fillers, "answer": answer})

    for words, cached in enumerate(found({"pages": 4096}, growing), 1):
        record("one", words, None, sglang(len(out), words + 1, cached))
    for words, cached in enumerate(found({**blocks, "pages": 1024}, growing), 1):
        record("two", words, None, vllm(len(out), words + 1, cached))
    for words in range(1, GROWN // 4 + 1):
        record("three", words, None, vllm(len(out), words + 1, None))
    for fillers in range(FILLERS + 1):
        prompt = ids(1, REPEATED)
        sent = [prompt, *(ids(2 + i, REPEATED) for i in range(fillers)), prompt]
        # Each on a server of its own that has just been started; the start token alone is shared, which is no whole block.
        record("two", REPEATED, fillers, vllm(len(out), REPEATED + 1, found({**blocks, "pages": ROOM}, sent)[-1]))
    path = assets() / "probe" / "answers.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in out), encoding="utf-8")
    print(f"{path.name}: {len(out) - 1} answers, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
