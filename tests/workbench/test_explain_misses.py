"""Why a request missed or hit less than expected: one reason each (field notes F13, F6, F14, A10, A12)."""

from __future__ import annotations

import msgspec

from tests.workbench.explaining import at_end, made
from workbench.explain import Explainer
from workbench.explain.misses import REASONS


def test_f13_never_seen() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "B8"})
    assert answer.reason == "never seen"
    assert answer.headline == "R2 reused 0 of its 8 prompt tokens: nothing that begins like it was stored (never seen)."


def test_f13_parted_at_k_with_both_rows_side_by_side() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8", "says": [901]}, {"id": "R2", "tokens": "A7+B9"})
    assert answer.reason == "parted"
    assert answer.headline == "R2 reused 7 of its 16 prompt tokens: it parts from R1 after 7 tokens, where R1 has 263 and R2 has 1280."
    (rows,) = answer.rows
    assert (rows.start, rows.differs, rows.same_text) == (1, 6, False)
    assert (rows.asked.name, rows.asked.ids) == ("R2", [257, 258, 259, 260, 261, 262, 1280, 1281, 1282, 1283, 1284, 1285])
    assert (rows.stored.name, rows.stored.ids) == ("R1", [257, 258, 259, 260, 261, 262, 263, 901])
    assert [(link.kind, link.id) for link in answer.links] == [
        ("event", 12), ("event", 13), ("request", "R1"), ("node", 1), ("event", 26),
    ]  # fmt: skip


def test_f13_parted_where_a_node_ends_and_others_go_on() -> None:
    requests = [{"id": f"R{i}", "tokens": f"A4+{letter}4"} for i, letter in enumerate("BCD", 1)]
    answer = at_end({}, *requests)
    assert answer.headline == "R3 reused 4 of its 8 prompt tokens: it parts from R1 after 4 tokens, where R1 has 1280 and R3 has 3328."


def test_f13_evicted_at_t_by_r() -> None:
    answer = at_end({"pages": 10}, {"id": "A", "tokens": "A8"}, {"id": "B", "tokens": "B9"}, {"id": "C", "tokens": "A8"})
    assert answer.reason == "evicted"
    assert answer.headline == "C reused 1 of its 8 prompt tokens: 6 more tokens of it had been stored and were evicted at event 15 for B."
    assert answer.detail[0] == "Tokens 1 to 6 left with node #1 at event 15 (step 2, 1 step before)."
    assert ("event", 15) in {(link.kind, link.id) for link in answer.links}


def test_f13_shorter_than_a_page() -> None:
    answer = at_end({"page_size": 16}, {"id": "R1", "tokens": "A40"}, {"id": "R2", "tokens": "B10"})
    assert answer.reason == "short"
    assert answer.headline == "R2 reused 0 of its 10 prompt tokens: it is shorter than a page: 10 tokens and the last must run, page = 16."


def test_f13_other_space() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8", "salt": "x"}, {"id": "R2", "tokens": "A8", "salt": "y"})
    assert answer.reason == "namespace"
    assert answer.headline == (
        "R2 reused 0 of its 8 prompt tokens: R1 has 7 more tokens of it in namespace salt x, and it asks in namespace salt y."
    )


def test_a18_the_same_placeholder_with_other_content() -> None:
    asked = {"tokens": "A4+I3+B2", "content_at": 4}
    answer = at_end({}, {"id": "R1", "content": "k1", **asked}, {"id": "R2", "content": "k2", **asked})
    assert answer.reason == "parted"
    assert answer.headline == (
        "R2 reused 4 of its 9 prompt tokens: it parts from R1 after 4 tokens, where the same token, 8448, stands for other content "
        "(k1 there, k2 here)."
    )


def test_f13_bypass() -> None:
    answer = at_end({"cache": "off"}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A8"})
    assert answer.reason == "off"
    assert answer.headline == "R2 reused 0 of its 8 prompt tokens: the cache is off, so nothing is looked up and nothing is kept."


def test_f13_every_reason_is_in_the_legend_and_clickable() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A4+B4"})
    assert answer.reason in REASONS and {link.kind for link in answer.links} == {"event", "request", "node"}


def test_being_written_right_now() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8", "at": 0}, {"id": "R2", "tokens": "A8", "at": 0})
    assert answer.reason == "in flight"
    assert answer.headline == "R2 reused 0 of its 8 prompt tokens: R1 is computing 7 more tokens of it right now (in-batch)."


def test_told_to_keep_nothing() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8", "store": False}, {"id": "R2", "tokens": "A8"})
    assert answer.reason == "not kept"
    assert answer.headline == (
        "R2 reused 0 of its 8 prompt tokens: R1 began with 7 more tokens of it, but was told to leave nothing in the cache."
    )


def test_a_failed_step_kept_nothing() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8", "fail_at_step": 1}, {"id": "R2", "tokens": "A8"})
    assert answer.headline.endswith("R1 began with 7 more tokens of it, but its step failed and nothing of that was stored.")


def test_the_last_token_must_run() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A8"})
    assert answer.reason == "last token"
    assert answer.headline == "R2 reused 7 of its 8 prompt tokens: everything is known, and the last token must run."


def test_a1_a_full_hit_that_ends_on_a_page_edge_runs_a_whole_page() -> None:
    answer = at_end({"page_size": 4}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A8"})
    assert answer.headline == (
        "R2 reused 4 of its 8 prompt tokens: 7 matched, 4 reusable because page = 4 and the last token must run."
    )


def test_what_is_stored_ends_there() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A8+B4"})
    assert answer.reason == "end"
    assert answer.headline == "R2 reused 8 of its 12 prompt tokens: what was stored of R1 ends there, the rest is new."


def test_a10_matched_but_not_a_whole_page() -> None:
    answer = at_end({"page_size": 16, "pages": 8}, {"id": "R1", "tokens": "A20"}, {"id": "R2", "tokens": "A10+B4"})
    assert answer.reason == "page"
    assert answer.headline == "R2 reused 0 of its 14 prompt tokens: 10 matched, 0 reusable because page = 16."
    assert answer.detail[:2] == ["shared 10 < page 16", "It is shorter than a page: 14 tokens and the last must run, page = 16."]
    assert answer.rows[0].asked.ids[answer.rows[0].differs] == 1280 and answer.rows[0].stored.ids[answer.rows[0].differs] == 266


def test_f6_a_shared_head_shorter_than_a_page_is_a_near_miss() -> None:
    answer = at_end({"page_size": 64, "pages": 8}, {"id": "R1", "tokens": "A40+B40"}, {"id": "R2", "tokens": "A40+C40"})
    assert answer.headline == "R2 reused 0 of its 80 prompt tokens: 40 matched, 0 reusable because page = 64."
    assert answer.detail[0] == "shared 40 < page 64"


def test_f6_also_where_the_first_one_was_too_short_to_be_stored_at_all() -> None:
    answer = at_end({"page_size": 64, "pages": 8}, {"id": "R1", "tokens": "A40+B10"}, {"id": "R2", "tokens": "A40+C40"})
    assert answer.reason == "page" and answer.detail[0] == "shared 40 < page 64"
    assert answer.rows[0].stored.name == "R1" and answer.rows[0].differs == 6


def test_a12_other_ids_with_equal_text_are_shown_side_by_side() -> None:
    trace, _ = made(
        {},
        {"id": "R1", "tokens": [10, 11], "max_new_tokens": 4, "says": [50, 13, 13, 60]},
        {"id": "R2", "tokens": [10, 11, 50, 26, 60, 70]},
    )
    trace.header.texts = {"10": "Say", "11": " it", "50": "x", "13": "\n", "26": "\n\n", "60": "So", "70": "?"}
    answer = Explainer(trace).request(len(trace) - 1, "R2")
    assert answer.headline == "R2 reused 3 of its 6 prompt tokens: it parts from R1 after 3 tokens, where R1 has “↵” and R2 has “↵↵”."
    assert answer.detail[0] == (
        "Both rows read the same from token 3 on: equal text, other ids. Sending the ids back would reuse them."
    )
    (rows,) = answer.rows
    assert rows.same_text and (rows.start, rows.differs) == (0, 3)
    assert (rows.asked.ids, rows.asked.texts) == ([10, 11, 50, 26, 60, 70], ["Say", " it", "x", "\n\n", "So", "?"])
    assert (rows.stored.ids, rows.stored.texts) == ([10, 11, 50, 13, 13, 60], ["Say", " it", "x", "\n", "\n", "So"])


def test_a12_two_ids_that_read_alike_are_told_apart_by_number() -> None:
    trace, _ = made({}, {"id": "R1", "tokens": [10, 11, 12]}, {"id": "R2", "tokens": [10, 21, 12]})
    trace.header.texts = {"10": "a", "11": " b", "21": " b", "12": "c"}
    answer = Explainer(trace).request(len(trace) - 1, "R2")
    assert answer.headline.endswith("after 1 token, where R1 has “␣b” (id 11) and R2 has “␣b” (id 21).")
    assert answer.rows[0].same_text


def test_a12_words_that_only_begin_alike_do_not_read_the_same() -> None:
    trace, _ = made({}, {"id": "R1", "tokens": [10, 11, 12]}, {"id": "R2", "tokens": [10, 21, 12]})
    trace.header.texts = {"10": "a", "11": " b", "21": " bc", "12": "d"}
    assert not Explainer(trace).request(len(trace) - 1, "R2").rows[0].same_text


def test_f14_evict_a_and_ask_for_a_five_steps_later_is_regretted() -> None:
    trace, explainer = made(
        {"pages": 10}, {"id": "A", "tokens": "A8", "says": [901]}, {"id": "B", "tokens": "B9"}, {"id": "C", "tokens": "A8", "at_step": 7}
    )
    end = len(trace) - 1
    node = explainer.node(end, 1)
    assert "Eviction took its last 7 tokens at event 15 for B. Regretted: C wanted 6 tokens of it 5 steps later, at event 28." in node.detail
    assert "Regretted: node #1 was wanted again." in explainer.event(14).detail


def test_an_answer_is_plain_json() -> None:
    answer = at_end({}, {"id": "R1", "tokens": "A8"}, {"id": "R2", "tokens": "A4+B4"})
    document = msgspec.json.decode(msgspec.json.encode(answer))
    assert set(document) == {"headline", "detail", "rows", "table", "links", "reason"}
