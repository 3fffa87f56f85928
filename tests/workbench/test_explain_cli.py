"""`python -m workbench why`: one moment of a recorded trace, explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench import cli

TRACE = str(Path(__file__).parents[1] / "golden" / "walkthrough.jsonl")


def why(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of `why` on the golden trace."""
    code = cli.main(["why", TRACE, *argv])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_a_request_with_both_rows_of_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = why(capsys, "--request", "R2")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "R2 (10 … 15 30 31) reused 6 of its 8 prompt tokens: it parts from R1 (10 … 15 20 21) after 6 tokens, where R1 has 20 and R2 has 30.",
        "  Prompt of 8 tokens: 6 from the cache, 2 to compute.",
        "  It finished after 2 output tokens: that was its limit.",
        "  Its time (simulated): 0 s in the queue, 300 ms in prefill, 200 ms in decode.",
        "",
        "  R2            10  11  12  13  14  15  30  31",
        "  R1            10  11  12  13  14  15  20  21  901  902",
        "  from token 0                          ^",
    ]


def test_an_event_a_node_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert why(capsys)[1].startswith("The run is over: 13 of 24 prompt tokens came from the cache (54 %).\n")
    assert why(capsys, "--seq", "23")[1].startswith("Node #1 is split after 6 tokens: the front becomes node #3, the rest stays node #1.")
    assert why(capsys, "--seq", "30", "--node", "3")[1].startswith("Node #3 holds 6 tokens and is locked by R2")
    assert why(capsys, "--page", "3")[1].splitlines()[0] == "Page 3 is held by node #3 since event 23 (step 3)."


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = why(capsys, "--request", "R2", "--json")
    document = json.loads(out)
    assert code == 0 and document["reason"] == "parted" and document["rows"][0]["differs"] == 6


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--request", "R9"], "request: 'R9' is no request of this run"),
        (["--seq", "70"], "seq: must be 0 to 69; got 70"),
        (["--page", "32"], "page: must be 0 to 31; got 32"),
        (["--node", "9"], "node: 9 is no node of this run"),
    ],
)
def test_a_question_about_nothing_exits_2(capsys: pytest.CaptureFixture[str], argv: list[str], says: str) -> None:
    assert why(capsys, *argv) == (2, "", f"error: {says}\n")


def test_one_thing_at_a_time() -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["why", TRACE, "--request", "R1", "--node", "1"])
    assert caught.value.code == 2
