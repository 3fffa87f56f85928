# %%
import json
from itertools import groupby

from jsonschema import validate

from workbench.decoding import decode as tape_of
from workbench.figures.strips import strips
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table

lesson = Lesson("L9")
lesson

# %% [markdown]
# ## The idea
#
# A program that reads a model's answer wants it in a fixed form, such as JSON with certain keys. One can ask for that and hope. Or one can see to it: the schema is compiled into an **automaton**, whose states say which bytes may come next. Before each token a
# **mask** forbids all tokens that cannot go on from the present state. Whatever the model then picks, the document stays valid.
#
# Often the schema leaves no choice at all. After the opening brace there is only one way to go on, up to the first value. Such text is **forced**. Why ask the model for it, one token after the other? **Jump-forward** appends it (Zheng et al. 2024, section 4).
#
# The catch lies in the tokens. The forced text is fixed; the tokens that spell it are not. You will see what follows from that.

# %%
schemas = {r.id: r.json_schema for r in lesson.scenario("scripted").requests}
documents = {r.id: bytes(r.says).decode() for r in lesson.scenario("scripted").requests if r.id != "stubborn"}
table(
    "Three documents under three schemas",
    ["", "document", "what the schema leaves open"],
    [
        ["film", documents["film"], "title: up to 30 characters; year: 1900 to 2099; summary: up to 60 characters"],
        ["address", documents["address"], "first name: up to 12 characters; five digits; two capitals; true or false"],
        ["wind", documents["wind"], "wind from the north, northeast, south, southwest, east or west"],
    ],
)

# %% [markdown]
# ## Predict
#
# Go through each document from left to right. A character is forced if nothing else could stand there after what is already written. Behind each comma and colon there is exactly one space; keys come in the order of the schema.
#
# Then the model, with a vocabulary of `49,152` tokens. A **pass** is one run through the model; without jumps each token takes one. A *verified* jump lets the forced text ride along in a pass as a draft, and
# keeps of it what the model would have written token for token. An *unverified* one appends it without asking.

# %%
lesson.predict(
    # stub: film=None,  # per cent of the characters that are forced
    # stub: address=None,  # the same
    # stub: wind=None,  # the same
    # stub: allowed=None,  # tokens, of 49,152, that the mask allows where the year begins
    # stub: saved=None,  # per cent of the passes that verified jumps save
    # stub: kept=None,  # "yes" or "no": the same tokens with verified jumps
    # stub: respelt=None,  # "yes" or "no": the same tokens with unverified jumps
    # solution:
    film=45,
    address=88,
    wind=96,
    allowed=2,
    saved=50,
    kept="yes",
    respelt="no",
    # end
)

# %% [markdown]
# ## Run
#
# First a puppet spells the documents byte by byte, so that every state of the automaton is visited. Each event `grammar.masked` tells the state before a token; `grammar.compiled` tells the automaton's edges and which of them are forced.
#
# Further down the embedded model answers under the same schemas, in float32 on this machine: without jumps, with verified and with unverified ones. That takes some seconds.

# %%
scripted = lesson.run("scripted", "film", "address", "wind", "allowed", "saved", "kept", "respelt")


def characters(run, request):
    """Each character of a byte-by-byte answer, and whether the automaton forced it."""
    edges = events(run, "grammar.compiled", request=request)[0].edges
    forced = {state for edge in edges if edge.forced for state in [edge.source, *edge.through]}
    ids = next(r.output_ids for r in run.report.requests if r.id == request)
    states = [event.state for event in events(run, "grammar.masked", request=request)]
    return [(chr(byte), state in forced) for byte, state in zip(ids, states, strict=True)]


forced = {name: characters(scripted, name) for name in documents}
shares = {name: 100 * sum(f for _, f in told) / len(told) for name, told in forced.items()}
compiled = {name: events(scripted, "grammar.compiled", request=name)[0] for name in documents}

# %% [markdown]
# ## Reveal

# %%
came = {name: (shares[name], compiled[name].seq) for name in documents}
lesson.reveal(scripted, film=came["film"], address=came["address"], wind=came["wind"])

# %%
chart(
    strips({name: [(char, "forced" if f else "free") for char, f in told] for name, told in forced.items()}),
    "One cell a character. Filled: the schema forces it. Hollow: the model has a choice.",
)

# %%
runs = {jump: lesson.run("answers", loaded=lesson.model(), jump=jump) for jump in ("off", "verified", "unverified")}
tapes = {jump: {name: tape_of(run.trace, name) for name in documents} for jump, run in runs.items()}
for answers in tapes.values():
    for name, tape in answers.items():
        validate(json.loads(tape.text), schemas[name])  # by a library that knows nothing of this engine
rows = [[name, jump, len(tape.tokens), tape.passes, tape.text] for name in documents for jump in runs for tape in [tapes[jump][name]]]
table("The model's answers, all of them valid", ["", "jumps", "tokens", "passes", "answer"], rows)

# %%
plain, verified, unverified = ({name: [t.id for t in tape.tokens] for name, tape in tapes[jump].items()} for jump in runs)
passes = {jump: sum(tape.passes for tape in answers.values()) for jump, answers in tapes.items()}
year = next(t for t in tapes["off"]["film"].tokens if t.text in ("1", "2"))
lesson.reveal(
    runs["verified"],
    allowed=year.allowed,
    saved=100 * (1 - passes["verified"] / passes["off"]),
    kept="yes" if plain == verified else "no",
    respelt="yes" if plain == unverified else "no",
)

# %%
KIND = {"sampled": "free", "jumped": "forced", "forced": "masked", "respelt": "respelt"}
shown = {f"{jump}": [(t.text, KIND[t.source]) for t in tapes[jump]["address"].tokens] for jump in runs}
chart(
    strips(shown, width=60, words={"free": "chosen in a pass", "forced": "jumped, no pass of its own"}),
    "The address answer, one cell a token. ␣ is a blank. Off: no jumps. A pass gives one cell that is not a jumped one.",
)

# %%
back = events(runs["verified"], "grammar.rolled_back", request="address")
show(runs["verified"], back[0].seq if back else None)

# %% [markdown]
# ## What happened
#
# **The mask** counts tokens, not characters. Where a key is forced, several tokens are allowed, namely all that are beginnings of the forced text. The model picks one, and under a mask that need not be the one its tokenizer would use. Read the line *off* of the second chart aloud.
#
# **Verified jumps** draft the tokenizer's spelling. Where the model agrees, tokens come for nothing. Where it would spell otherwise, the rest of the draft is rolled back. So the tokens are those of plain decoding, and only passes are saved.
#
# **Unverified jumps** spell the text so far and the forced text together, as the tokenizer would. Earlier tokens may give way. From there on the model reads other tokens, and may go on with other *words*. Even so the spelling is not always the tokenizer's: a forced text that ends in a blank cuts off the blank with which the next word's token would begin. mlc-llm (PR #2551) therefore holds back a last token that could still merge. Compare the answers in the table: all are valid. Valid is not the same as true, and not the same as plain decoding.
#
# **A trap:** the schema fixes the order of the keys. A model that would rather say the summary first has to say the title now, and its value may suffer.

# %%
tokenizer = lesson.model().tokenizer


def odd(answers):
    """Answers whose tokens are not those into which the tokenizer cuts their text."""
    return ", ".join(name for name, tape in answers.items() if [t.id for t in tape.tokens] != tokenizer.ids(tape.text)) or "none"


changed = ", ".join(name for name in documents if tapes["off"][name].text != tapes["unverified"][name].text) or "none"
stubborn = bytes(next(r.output_ids for r in scripted.report.requests if r.id == "stubborn")).decode()
rolled = sum(tape.rolled_back for tape in tapes["verified"].values())
say(
    f"Answers whose tokens are not the tokenizer's own spelling: without jumps {odd(tapes['off'])}; "
    f"with unverified jumps {odd(tapes['unverified'])}. Answers whose words changed with unverified jumps: {changed}. "
    f"Verified jumps took {passes['verified']} passes instead of {passes['off']} and rolled back {rolled} drafted tokens. "
    f"And the fourth script, which wanted the year 1850, was made to say {stubborn}"
)

# %% [markdown]
# ## Exercise: a jump that rolls back
#
# `ids` are the answer's tokens so far, `forced` is the text that must follow. `encode(text)` gives the tokenizer's ids of a text, `decode(ids)` the text of ids.
#
# Spell the whole anew. Keep the old tokens as far as both spellings agree from the start. Return the new ids behind them, and how many old ones were rolled back. Your jump is compared with each `grammar.jumped` event of the engine's unverified run.

# %%
def jump(ids, forced, encode, decode):
    """(ids that follow what is kept, how many of `ids` are rolled back)"""
    # stub: raise Unfinished("whole = encode(decode(ids) + forced); count in keep how many ids agree from the start; the new ones are whole[keep:], and len(ids) - keep are rolled back")
    # solution:
    whole = encode(decode(ids) + forced)
    keep = 0
    while keep < min(len(ids), len(whole)) and ids[keep] == whole[keep]:
        keep += 1
    return whole[keep:], len(ids) - keep
    # end


lesson.check("jump", jump, runs["unverified"])

# %% [markdown]
# ## Three questions about your own run
#
# Another schema and a document, spelt byte by byte. `lesson.own.run` is the run; `characters(lesson.own.run, "own")` gives each character and whether it was forced. Or count by hand.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
mine = [f for _, f in characters(lesson.own.run, "own")]
lengths = [len(list(group)) for is_forced, group in groupby(mine) if is_forced]
first, second, third = sum(mine), len(lengths), max(lengths)
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang**: `--grammar-backend` (xgrammar by default); a request gives `json_schema`, `regex` or `ebnf`. Metrics: `sglang:num_grammar_queue_reqs`, `sglang:grammar_compilation_time_seconds`. Its jump-forward was **removed** in March 2025 (PR #4032) after reports
#   of broken answers (#2045). The code that is left is called by nothing.
# - **vLLM** has masks by xgrammar, guidance, outlines and lm-format-enforcer. Jump-forward exists there as experimental pull requests (#15490, #36142).
# - So none of the two jumps today. The figures that are published come from earlier: 1.6 times the JSON throughput (Zheng et al. 2024). The way to keep the answers and save passes is verifying, as above.

# %%
lesson.finish()
