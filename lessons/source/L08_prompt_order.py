# %%
from IPython.display import display

from workbench.experiments.bench import Bench
from workbench.experiments.ordering import OWN, PUBLIC, scenario
from workbench.experiments.ordering import chart as waterfall
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table

lesson = Lesson("L8")
lesson

# %% [markdown]
# ## The idea
#
# An agent is a program that lets a model use tools. With every step it sends the model everything again: the list of tools, its instructions, and
# the history, meaning all that was said and found so far. Only the last bit is new, so nearly all of it could be reused.
#
# A server that has computed a prompt keeps the result. If another prompt begins with the same tokens, it need not compute these again; that is called reuse.
# But it reuses a **prefix** alone: tokens from the very first one to the first that differs. One small part that changes spoils all that stands behind it.
# What decides is the **template**, the order in which the parts are put together. Here are five. They hold the same tools, instructions and history:
#
# | template | what stands in the prompt, from front to back |
# |---|---|
# | canonical | tools, instructions, history |
# | header first | *a line about the session*, tools, instructions, history |
# | note in the middle | tools, instructions, *a note that changes with every call*, history |
# | tools shuffled | tools *in another order at every call*, instructions, history |
# | timestamp first | *the time and the request's id*, tools, instructions, history |
#
# Several sessions are under way at once, and all of them use the same tools and the same instructions. In our small set there are four sessions of four to seven calls, `23` in all; so
# `19` calls follow one of their own session. Tools and instructions together have `about 920` tokens, a history `160` on average, the line about the session `5`, the note `26`.

# %% [markdown]
# ## Predict
#
# First rank the templates. Place 1 reuses the largest share of its prompt tokens, place 5 the smallest. `canonical` takes place 1; the other four are yours. Two of them lie close
# together: ask of each how many calls lose how many tokens.
#
# Then look at how the first two prompts begin with the template *timestamp first*:
#
# ```
# Now: 2026-01-05T10:00:00Z, request 91b72265b1f5 system {"type":"function","function":{"name": ...
# Now: 2026-01-05T10:00:07Z, request cd61d8f16adf system {"type":"function","function":{"name": ...
# ```
#
# A token is here one word or one mark: `Now` is token 0, `:` token 1, `2026` token 2, `-` token 3, `01` token 4. A word ends where a mark or a space comes, so `05T10`
# is one token and so is `00Z`. Which token is the first that differs? And how many tokens of the second prompt will be found, if the engine shares prompts in pages of `16` tokens, each page
# whole or not at all?
#
# Last: another application answers questions from passages. It finds three of them for each question and puts the best one first. Many questions need the same passages, but
# another one of them is the best. What if the application always wrote passages in one fixed order?

# %%
lesson.predict(
    # stub: header=None,  # place of "header first", 2 to 5
    # stub: note=None,  # place of "note in the middle", 2 to 5
    # stub: shuffled=None,  # place of "tools shuffled", 2 to 5
    # stub: stamp=None,  # place of "timestamp first", 2 to 5
    # stub: parts=None,  # the first token that differs, counted from 0
    # stub: reused=None,  # tokens of the second prompt that are found
    # stub: passages=None,  # "lower", "about the same" or "more than 10 points higher"
    # solution:
    header=2,
    note=3,
    shuffled=4,
    stamp=5,
    parts=10,
    reused=0,
    passages="more than 10 points higher",
    # end
)

# %% [markdown]
# ## Run
#
# The real engine serves every call once for each template, one call after another, with room for everything. The prompts are those of a library's small agent that comes
# with the workbench; if the environment variable `RADIX_DATA` names a folder with the public tau-bench data, that agent is taken instead. No model runs:
# what is reused depends on the prompts alone. Texts become tokens by words, so counts are in words and marks, not in a model's own tokens.

# %%
TEMPLATES = ["canonical", "header first", "note in the middle", "tools shuffled", "timestamp first"]
bench = Bench()
file, whose = bench.traffic_file(PUBLIC, OWN)  # the public data where it is, else our own small set
asked_first = list(lesson.card.predictions)  # no run before all predictions are made
# up to 8 sessions are taken from the data, as many as are there
runs = {name: lesson.run(scenario(bench, file, name, sessions=8, text="words"), *asked_first) for name in TEMPLATES}
rates = {name: 100 * run.report.totals.hit_rate for name, run in runs.items()}

texts, _ = bench.traffic_file("xquad/xquad.en.json", "corpus.jsonl")
rag = {"kind": "rag", "file": texts, "sequential": True, "output": 0, "text": "words"}
pages = {"executor": "puppet", "page_size": 16, "pages": 65536}  # a puppet in place of a model: its answers are scripted
found, fixed = [
    lesson.run({"name": f"passages, {order} order", "engine": pages, "workload": rag | {"order": order}}, *asked_first)
    for order in ("retrieval", "canonical")
]
say(f"{len(runs['canonical'].report.requests)} calls, from {whose}, and {len(found.report.requests)} questions with passages. All have been served.")

# %% [markdown]
# ## Reveal
#
# First your places, and what the second prompt found. Then a chart: a bar is what a template reuses, the hatched part on top what its one change cost. Last the player: it stands where
# the second prompt with the time in front is looked up. Its panel **Why** shows both prompts as numbers; the two framed ones are `00Z` and `07Z`. A request named `A4-2` is
# the second call of session `A4`.

# %%
ranking = sorted(TEMPLATES, key=lambda name: -rates[name])
stamped = runs["timestamp first"]
looked_up = events(stamped, "request.matched")[1]  # the look-up of the second prompt
points = 100 * (fixed.report.totals.hit_rate - found.report.totals.hit_rate)
outcome = lesson.reveal(
    stamped,
    header=ranking.index("header first") + 1,
    note=ranking.index("note in the middle") + 1,
    shuffled=ranking.index("tools shuffled") + 1,
    stamp=ranking.index("timestamp first") + 1,
    parts=(looked_up.raw_length, looked_up.seq),
    reused=(looked_up.length, looked_up.seq),
    passages="more than 10 points higher" if points > 10 else "lower" if points < -2 else "about the same",
)
display(outcome)
apart = abs(rates[ranking[1]] - rates[ranking[2]])
say(
    f"Places 2 and 3, {ranking[1]} and {ranking[2]}, lie {apart:.1f} points apart. A line about the session costs the first call of every further session "
    "all of tools and instructions, but only once; a changing note costs every later call its history."
)

# %%
chart(draw(waterfall(rates)), "Share of prompt tokens reused with each template, in pages of 16 tokens, with room for everything.")

# %%
show(stamped, looked_up.seq)

# %% [markdown]
# ## The same with passages
#
# Here nothing changes with time. Many questions need the same passages, only in another order, because each has another best one.

# %%
rows = [
    [order, r.totals.prompt_tokens, r.totals.cached_tokens, 100 * r.totals.hit_rate]
    for order, r in [("best passage first", found.report), ("one fixed order", fixed.report)]
]
table("The same questions with the same passages", ["order of passages", "prompt tokens", "found in the cache", "reused, %"], rows)

# %% [markdown]
# ## What happened
#
# A change costs itself *and everything behind it*. The line about the session stands in front, but it stays the same within a session: only other sessions lose.
# The note changes with every call, so each call computes the history behind it anew. Shuffled tools agree in the few tokens with which every tool begins, and wholly when an order comes up
# again. And the time in front leaves nothing at all, although it is one short line.
#
# ## Exercise 1: where do two prompts part?
#
# This is the first thing to ask of real traffic. `before` and `now` are two prompts, lists of token numbers. Return the place of the first token that differs, counted from 0.
# If one is the beginning of the other, they part where the shorter one ends.

# %%
def divergence(before, now):
    """The place of the first token, counted from 0, at which two prompts differ."""
    # stub: raise Unfinished("only places that both lists have can be compared. What do you return at the first difference, and what if there is none?")
    # solution:
    for place in range(min(len(before), len(now))):
        if before[place] != now[place]:
            return place
    return min(len(before), len(now))
    # end


lesson.check("divergence", divergence)

# %% [markdown]
# With it you can read each template's fault off two pairs of prompts: two calls of one session, and the first calls of two sessions. The earlier a pair parts, the more that pair
# has to compute again. What counts in the end is how many calls meet which kind of pair.

# %%
rows = []
for name, run in runs.items():
    calls = run.scenario.requests
    first, following = calls[:2]
    other = next(r for r in calls if r.id.split("-")[0] != first.id.split("-")[0])
    within, between = (divergence(list(first.tokens), list(r.tokens)) for r in (following, other))
    rows.append([name, len(following.tokens), within, between, rates[name]])
columns = ["template", "tokens of the 2nd prompt", "parts at, same session", "parts at, two sessions", "reused in all calls, %"]
table("Where two prompts part", columns, rows)

# %% [markdown]
# ## Exercise 2: mend a template
#
# This template was found in use. It needs all its parts, and they stand in the worst order:
#
# ```python
# return [call.clock, call.session, *call.tools, call.instructions, call.note, *call.history]
# ```
#
# Each part is a text; `call.tools` and `call.history` are lists of texts. `clock` (time and request id) and `note` change with every call, `session` with every session.
# `call.tools` comes in another order every time. Return all parts in one list, each once, the history in its own order, so that the hit rate reaches at least `0.95` times that of the canonical order.
# Try any order you like: when it reuses too little, the check says where the prompts part.

# %%
def assemble(call):
    """The parts of one prompt, as a list of texts from front to back."""
    # stub: raise Unfinished("copy the return line from above; then ask of each part how often it changes, and what that means for its place. And the tools themselves: how could they come in the same order every time?")
    # solution:
    return [*sorted(call.tools), call.instructions, call.session, *call.history, call.note, call.clock]
    # end


lesson.check("template", assemble)

# %% [markdown]
# A higher hit rate says nothing about the answers. Another order is another prompt to the model, and its answers may change, for better or worse: a note read last
# may weigh more than one read early, and the best passage may no longer stand first. Compare answers on examples of your own before you keep the new order.
#
# A deployment that moved its changing parts to the end went from 7 % to 84 %, as ProjectDiscovery published it in "How We Cut LLM Costs by 59% With Prompt Caching". Its traffic is not public, so it cannot be repeated here.
#
# ## Three questions about your own run
#
# Four prompts of an agent that was drawn for you alone, one after the other. `lesson.own.facts` holds them as text, `lesson.own.run` is the run.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
prompts = [lesson.own.facts[name].split() for name in ("P1", "P2", "P3", "P4")]
first = divergence(prompts[0], prompts[1])
second = events(lesson.own.run, "request.matched", request="P4")[0].length


def clock_last(words):
    at = words.index("clock")
    return words[:at] + words[at + 3 :] + words[at : at + 3]


third = divergence(clock_last(prompts[2]), clock_last(prompts[3])) // 4 * 4
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** writes `#new-token` and `#cached-token` for each prefill. With `--enable-cache-report` each answer says how many of its prompt tokens were found, in `usage.prompt_tokens_details.cached_tokens`.
# - **vLLM** says the same per answer with `--enable-prompt-tokens-details`, and in all in the metrics `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits`.
# - Send two prompts that should share their beginning. If the count stays near zero, write both down exactly as they were sent and find the first difference. The usual suspects: a time
#   or an id in front, tools out of a set, JSON keys in changing order (`json.dumps(..., sort_keys=True)` helps), and passages in the order of their score.
# - No count in the answer means that you do not know. It does not mean zero.

# %%
lesson.finish()
