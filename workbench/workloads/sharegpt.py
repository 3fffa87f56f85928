"""Reads chats in the ShareGPT layout: a JSON list, or one JSON object a line, of conversations.

A record has `conversations`, a list of {"from": "human" or "gpt", "value": text}. Records that cannot be
used are counted and the first few named; none stops the reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.workloads.lines import Tally, decoded, records, whole_text
from workbench.workloads.traffic import File

ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "assistant": "assistant",
    "chatgpt": "assistant",
    "system": "system",
}


@dataclass(frozen=True)
class Conversation:
    """One chat: what was asked and answered, in turn; the last answer may be missing."""

    id: str
    turns: list[tuple[str, str | None]]
    system: str | None = None


@dataclass
class Chats(Tally):
    """What was read: usable conversations, how many records there were, and what was wrong with the others."""

    conversations: list[Conversation] = field(default_factory=list)


def read(path: File) -> Chats:
    """All conversations of a file, or of a folder's files by name. Raises ReadError when it cannot be read or holds none."""
    if isinstance(path, Path) and path.is_dir():
        return _folder(path)
    chats = Chats()
    for where, record in records(path):
        chats.records += 1
        try:
            chats.conversations.append(conversation(record, where))
        except ValueError as error:
            chats.wrong.append(f"{where}: {error}")
    if not chats.conversations:
        raise chats.nothing(path, "conversation")
    return chats


def _folder(path: Path) -> Chats:
    chats = Chats()
    for file in sorted(p for p in path.iterdir() if p.suffix in (".json", ".jsonl")):
        one = read(file)
        chats.records += one.records
        chats.conversations += one.conversations
        chats.wrong += [f"{file.name}, {wrong}" for wrong in one.wrong]
    if not chats.conversations:
        raise chats.nothing(path, "conversation")
    return chats


def conversation(record: Any, where: str) -> Conversation:
    """One record, or the line that holds it, as a conversation. Raises ValueError saying what is wrong with it."""
    record = decoded(record)
    if not isinstance(record, dict) or not isinstance(record.get("conversations"), list):
        raise ValueError("has no list of conversations")
    system: str | None = None
    turns: list[tuple[str, str | None]] = []
    for number, message in enumerate(record["conversations"], 1):
        role, text = _message(message, number)
        if role == "system" and number == 1:
            system = text
        elif role == "user" and (not turns or turns[-1][1] is not None):
            turns.append((text, None))
        elif role == "assistant" and turns and turns[-1][1] is None:
            turns[-1] = (turns[-1][0], text)
        else:
            raise ValueError(f"message {number} is {message['from']}'s, out of turn")
    if not turns:
        raise ValueError("nobody asks anything")
    return Conversation(str(record.get("id", where)), turns, system)


def _message(message: Any, number: int) -> tuple[str, str]:
    who = message.get("from") if isinstance(message, dict) else None
    if not isinstance(who, str) or who not in ROLES:
        raise ValueError(f"message {number} is from {who!r}; known are {', '.join(ROLES)}")
    return ROLES[who], whole_text(message.get("value"), f"message {number}")
