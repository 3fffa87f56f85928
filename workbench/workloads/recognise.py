"""Which kind of workload a file holds: told by its first records, whatever it is called."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from workbench import yamltext
from workbench.workloads import lines, mooncake, passages, prompts, requests_log, sharegpt, trajectories
from workbench.workloads.traffic import File

LOOKED_AT = 50
"""Records that are looked at; the first of a known kind decides."""
SCENARIO = 1_000_000
"""Longest text, in bytes, that may be a scenario."""
NEEDS = {
    "hash_ids (a Mooncake trace)": "mooncake", "conversations (ShareGPT)": "chat", "messages, prompt or body (a request log)": "requests",
    "text with questions, or SQuAD's layout (passages)": "rag", "messages with a tool's, or traj (an agent's trajectory)": "agent",
}  # fmt: skip
"""What makes a JSON record one of a kind, in words."""

COUNTS: dict[str, Callable[[File], int]] = {
    "chat": lambda file: len(sharegpt.read(file).conversations),
    "agent": lambda file: len(trajectories.read(file, None, lambda _: [])[0]),
    "rag": lambda file: sum(len(one.questions) for one in passages.read(file)[0]),
    "mooncake": lambda file: len(lines.collect(file, mooncake.parsed, "request")[0]),
    "requests": lambda file: len(lines.collect(file, requests_log.parsed, "request")[0]),
    "prompts": lambda file: len(lines.collect(file, prompts.parsed, "prompt", ((f"line {n}", line) for n, line in lines.lines(file)))[0]),
}
"""Kind -> how much of a file can be used: conversations, sessions, questions, requests. They raise ReadError where nothing can."""


def recognise(content: bytes) -> str | None:
    """`trace`, `scenario` or a kind of workload; None: JSON of no known kind, or no text."""
    content = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    for record in _records(content):
        kind = _kind(record)
        if kind is not None:
            return kind
    if not content or content[:1] in (b"{", b"[") or not _any_text(content):
        return None
    return "scenario" if _is_scenario(content) else "prompts"


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    """The first JSON objects: of a list, one a line, or the whole file."""
    found = _json(content) or [one for line in _first_lines(content) for one in _json(line)]
    for one in found:
        for record in one[:LOOKED_AT] if isinstance(one, list) else [one]:
            if isinstance(record, dict):
                yield record


def _first_lines(content: bytes) -> list[bytes]:
    return content.split(b"\n", LOOKED_AT)[:LOOKED_AT]


def _json(text: bytes) -> list[Any]:
    try:
        return [json.loads(text.decode())]
    except (ValueError, RecursionError):
        return []


def _kind(record: dict[str, Any]) -> str | None:
    """The kind that one record is of; None where none can be told."""
    if "schema_version" in record or {"seq", "kind"} <= record.keys():
        return "trace"
    if isinstance(record.get("requests"), list) or isinstance(record.get("workload"), dict):
        return "scenario"
    if "hash_ids" in record:
        return "mooncake"
    if "conversations" in record:
        return "chat"
    if {"text", "questions"} <= record.keys() or isinstance(record.get("data"), list):
        return "rag"
    if "traj" in record or ("model" not in record and _uses_tools(record.get("messages"))):
        return "agent"
    wrapped = any(isinstance(record.get(key), dict) for key in requests_log.WRAPPERS)
    return "requests" if wrapped or "messages" in record or "prompt" in record else None


def _uses_tools(messages: Any) -> bool:
    """Whether a tool speaks or is called: a request log's own lines name a model beside it."""
    spoken = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    return any(one.get("role") in ("tool", "function") or one.get("tool_calls") for one in spoken)


def _any_text(content: bytes) -> bool:
    """Whether one of the first lines is text; others are counted as bad when they are read."""
    for line in _first_lines(content):
        try:
            if line.decode().strip() and b"\0" not in line:
                return True
        except UnicodeDecodeError:
            continue
    return False


def _is_scenario(content: bytes) -> bool:
    """Whether it is YAML that lists requests or names a workload."""
    if len(content) > SCENARIO or not any(line.startswith((b"requests", b"workload")) for line in content.split(b"\n")):
        return False
    try:
        data = yamltext.read(content.decode())
    except (yamltext.YamlError, UnicodeDecodeError):
        return False
    return isinstance(data, dict) and _kind(data) == "scenario"
