"""Reads agents' trajectories: message lists in which each assistant message was one call of the model.

A record has `messages` (or tau-bench's `traj`), and `tools` where the file brings them; else a file of
tools, one a line, serves all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from workbench.workloads import lines
from workbench.workloads.messages import Message, compact, plain, tool_texts
from workbench.workloads.prompt_order import Part, Session, Step
from workbench.workloads.traffic import File

Speller = Callable[[str], list[int]]
"""A text to ids; nothing, where a model reads the texts themselves."""


def read(path: File, tools: File | None, spell: Speller, most: int | None = None) -> tuple[list[Session], lines.Tally]:
    """The first `most` sessions of a file, or all. Raises ReadError where it, or the file of tools, holds none."""
    once = functools.cache(lambda role, text: Part(spell(f"{role}\n{text}\n"), text, role))
    shared = _tools(tools) if tools is not None else None

    def parse(record: Any) -> tuple[list[Message], list[str]]:
        if not isinstance(record, dict):
            raise ValueError("is no JSON object")
        own = tool_texts(record.get("tools")) if shared is None else shared
        messages = plain(record.get("messages", record.get("traj")))
        session(messages, own, lambda role, text: Part())  # checked now; spelt, which takes longer, only where it is wanted
        return messages, own

    found, tally = lines.collect(path, parse, "trajectory")
    return [session(messages, own, once) for messages, own in found[:most]], tally


def session(messages: list[Message], tools: list[str], part: Callable[[str, str], Part]) -> Session:
    """A session out of its messages. Raises ValueError where the model is never called."""
    system, steps, new = [], [], []
    for number, message in enumerate(messages):
        made = part(message["role"], message["content"])
        if number == 0 and message["role"] == "system":
            system.append(made)
        elif message["role"] == "assistant":
            steps.append(Step(new, made))
            new = []
        else:
            new.append(made)
    if not steps:
        raise ValueError("no message is the assistant's, so the model is never called")
    return Session([part("system", tool) for tool in tools], system, steps)


def _tools(path: File) -> list[str]:
    found, _ = lines.collect(path, _tool, "tool")
    return found


def _tool(record: Any) -> str:
    if not isinstance(record, dict):
        raise ValueError("is no JSON object")
    return compact(record)
