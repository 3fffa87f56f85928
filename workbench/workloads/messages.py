"""Chat messages as OpenAI-style logs have them, made plain: a role and a text each."""

from __future__ import annotations

import json
from typing import Any

from workbench.workloads.lines import whole_text

ROLES = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool", "function": "tool",
}  # fmt: skip
Message = dict[str, str]


def plain(messages: Any) -> list[Message]:
    """Messages with their texts; a tool call is written as JSON. Raises ValueError naming the message."""
    if not isinstance(messages, list) or not messages:
        raise ValueError("has no list of messages")
    return [_plain(message, number) for number, message in enumerate(messages, 1)]


def _plain(message: Any, number: int) -> Message:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in ROLES:
        raise ValueError(f"message {number} is from {role!r}; known are {', '.join(ROLES)}")
    texts = [_content(message.get("content"), number)]
    for call in message.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise ValueError(f"message {number} has a tool call without a function")
        texts.append(compact({"name": function.get("name"), "arguments": function.get("arguments")}))
    text = "\n".join(t for t in texts if t)
    return {"role": ROLES[role], "content": whole_text(text, f"message {number}")}


def _content(content: Any, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ValueError(f"message {number} has no text as its content")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text" or not isinstance(part.get("text"), str):
            raise ValueError(f"message {number} has a part of type {kind!r}; only text is read")
    return "\n".join(part["text"] for part in content)


def tool_texts(tools: Any) -> list[str]:
    """Tool schemas, each as one line of JSON. Raises ValueError where they are none."""
    if tools is None:
        return []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise ValueError("tools is no list of JSON objects")
    return [compact(tool) for tool in tools]


def compact(value: Any) -> str:
    """JSON in one line, keys as they came."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
