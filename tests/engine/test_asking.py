"""What cannot be asked is refused with one sentence that names the field, and nothing is left behind."""

from __future__ import annotations

import math
from typing import Any

import pytest

from engine.engine import SubmitError
from tests.engine.lab import Lab

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt: give either prompt"),
    ({"messages": [{"role": "user", "content": "hi"}]}, "prompt: give either prompt"),
    ({"prompt": None, "messages": [{"role": "user", "content": "hi"}]}, "prompt: this executor has no tokenizer"),
    ({"prompt": "hello"}, "prompt: this executor has no tokenizer; give token ids"),
    ({"prompt": []}, "prompt: is empty; at least one token is needed"),
    ({"prompt": 5}, "prompt: must be a text or a list of token ids; got int"),
    ({"prompt": b"abc"}, "prompt: must be a text or a list of token ids; got bytes"),
    ({"prompt": {1: 2}}, "prompt: must be a text or a list of token ids; got dict"),
    ({"prompt": {1, 2}}, "prompt: must be a text or a list of token ids; got set"),
    ({"prompt": [1, -1]}, "prompt: token ids must be integers from 0 to 65535; got -1"),
    ({"prompt": [65536]}, "prompt: token ids must be integers from 0 to 65535; got 65536"),
    ({"prompt": [1.0]}, "prompt: token ids must be integers from 0 to 65535; got 1.0"),
    ({"prompt": [True]}, "prompt: token ids must be integers from 0 to 65535; got True"),
    ({"prompt": ["1"]}, "prompt: token ids must be integers from 0 to 65535; got '1'"),
    ({"prompt": [None]}, "prompt: token ids must be integers from 0 to 65535; got None"),
    ({"prompt": [[1]]}, "prompt: token ids must be integers from 0 to 65535; got [1]"),
    ({"id": "taken"}, "id: must be a new, non-empty string; got 'taken'"),
    ({"id": ""}, "id: must be a new, non-empty string; got ''"),
    ({"id": 7}, "id: must be a new, non-empty string; got 7"),
    ({"at": -1}, "at: must be seconds, 0 or more; got -1"),
    ({"at": math.nan}, "at: must be seconds, 0 or more; got nan"),
    ({"at": math.inf}, "at: must be seconds, 0 or more; got inf"),
    ({"at": "soon"}, "at: must be seconds, 0 or more; got 'soon'"),
    ({"think": -0.5, "after": "taken"}, "think: must be seconds, 0 or more; got -0.5"),
    ({"think": None, "after": "taken"}, "think: must be seconds, 0 or more; got None"),
    ({"content_at": 9}, "content_at: must be a token of the prompt, 0 to "),
    ({"content_at": 1.5}, "content_at: must be a token of the prompt, 0 to "),
    ({"content_at": 1}, "content_at: says where content begins, and there is none; give content as well"),
    ({"content_at": 1, "namespace": ("s", None, None)}, "content_at: says where content begins"),
    ({"at_step": -1}, "at_step: must be an integer, 0 or more; got -1"),
    ({"at_step": 1.5}, "at_step: must be an integer, 0 or more; got 1.5"),
    ({"at_step": True}, "at_step: must be an integer, 0 or more; got True"),
    ({"at": 1, "at_step": 1}, "at: give at most one of at, at_step, after; got at, at_step"),
    ({"at_step": 1, "after": "taken"}, "at_step: give at most one of at, at_step, after; got at_step, after"),
    ({"after": "nobody"}, "after: 'nobody' is no request of this run"),
    ({"after": 3}, "after: must be the id of another request; got 3"),
    ({"abort_at_step": 0}, "abort_at_step: must be an integer, 1 or more; got 0"),
    ({"fail_at_step": "x"}, "fail_at_step: must be an integer, 1 or more; got 'x'"),
    ({"namespace": "salt"}, "namespace: must be (salt, adapter, content), each a text or None; got 'salt'"),
    ({"namespace": ("a", "b")}, "namespace: must be (salt, adapter, content)"),
    ({"namespace": (1, None, None)}, "namespace: must be (salt, adapter, content)"),
    ({"priority": 1.5}, "priority: must be an integer; got 1.5"),
    ({"priority": True}, "priority: must be an integer; got True"),
    ({"store": 1}, "store: must be true or false; got 1"),
    ({"label": 5}, "label: must be a text; got 5"),
    ({"says": "hi"}, "says: must list token ids from 0 to 65535, or rankings of them"),
    ({"says": [-1]}, "says: must list token ids from 0 to 65535, or rankings of them; got -1"),
    ({"says": [[]]}, "says: must list token ids from 0 to 65535, or rankings of them; got []"),
    ({"says": [[1, "2"]]}, "says: must list token ids from 0 to 65535, or rankings of them"),
    ({"stop": ("x",)}, "stop: needs a tokenizer, and this executor has none"),
    ({"max_new_tokens": -1}, "max_new_tokens: input should be greater than or equal to 0; got -1"),
    ({"max_new_tokens": 10**7}, "max_new_tokens: input should be less than or equal to 1000000"),
    ({"max_new_tokens": "many"}, "max_new_tokens: input should be a valid integer"),
    ({"temperature": math.nan}, "temperature: input should be a finite number"),
    ({"temperature": -1}, "temperature: input should be greater than or equal to 0; got -1"),
    ({"top_p": 0}, "top_p: input should be greater than 0; got 0"),
    ({"top_k": 0}, "top_k: input should be greater than or equal to 1; got 0"),
    ({"seed": -1}, "seed: input should be greater than or equal to 0; got -1"),
    ({"logprobs": 21}, "logprobs: input should be less than or equal to 20; got 21"),
    ({"max_tokens": 5}, "max_tokens: unknown key"),
]


@pytest.mark.parametrize(("asked", "says"), WRONG, ids=lambda v: repr(v)[:60] if isinstance(v, dict) else "")
def test_a_request_that_makes_no_sense_is_refused_and_leaves_nothing(asked: dict[str, Any], says: str) -> None:
    lab = Lab()
    lab.ask("taken", [1, 2], 3)
    before, told = lab.engine.snapshot(), len(lab.trace)
    with pytest.raises(SubmitError) as caught:
        lab.engine.submit(**{"prompt": [1, 2, 3], **asked})
    assert str(caught.value).startswith(says)
    assert lab.engine.snapshot() == before and len(lab.trace) == told
    lab.serve("next", [5], 1)
    assert lab.reasons == {"taken": "length", "next": "length"}


def test_a_name_that_was_refused_is_still_free() -> None:
    lab = Lab()
    with pytest.raises(SubmitError):
        lab.engine.submit([1], id="R", at=-1)
    lab.serve("R", [1], 1)
    assert lab.reasons == {"R": "length"}


def test_an_empty_namespace_is_no_namespace() -> None:
    lab = Lab()
    lab.serve("R1", [1, 2, 3], 1, namespace=(None, None, None))
    lab.serve("R2", [1, 2, 3], 1)
    assert lab.hit("R2") == 2


@pytest.mark.parametrize("prompt", [(1, 2, 3), range(3), iter([1, 2, 3])])
def test_any_row_of_ids_is_a_prompt(prompt: Any) -> None:
    lab = Lab()
    lab.engine.submit(prompt, id="R", max_new_tokens=1)
    lab.run()
    assert len(lab.request("R").prompt) == 3
