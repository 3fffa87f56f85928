# %%
from workbench.experiments.result import Chart, Curve, Point
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table
from workbench.report import spread

lesson = Lesson("L11")
lesson

# %% [markdown]
# ## The idea
#
# Three times are measured of a request that is answered token by token:
#
# | name | from | to |
# |---|---|---|
# | TTFT, time to first token | the request comes | its first token |
# | TPOT, time per output token | its first token | its last one, divided by the tokens after the first |
# | total, or end to end | the request comes | its last token |
#
# A prefix cache shortens the first. Work on the prompt, called prefill, is skipped for tokens that are found. The answer is still made one token after another.
#
# Many published gains come from a mistake that is easy to make: the benchmark is run twice, and the second time the cache already holds its prompts. In vllm#52884 a warm cache raised throughput
# by up to 86 %. In vllm#54227 it made TTFT 49 times lower and throughput 2.32 times higher, and not by the same factor at every load. A run with such a cache is **warm**; a run
# whose prompts are all new is **cold**. Both are fine to measure. They must not be mixed up.

# %% [markdown]
# ## Predict
#
# One server, three rounds of twenty requests. The second round sends the same prompts again, as a tool does with the same seed. The third sends new prompts of the same lengths, as with another seed.
# Each round has four clients; a client sends its next request when it has its answer (a *closed loop*). Prompts have `256` to `2048` tokens, answers `16` to `96`.
#
# Whole pages of `16` tokens are shared, and the last token of a prompt is never looked up, because the answer starts from it.
#
# Then the first round once more on a fresh server, in an *open loop*: forty requests a second come, whether or not the earlier ones were answered.

# %%
lesson.predict(
    # stub: found=None,  # of the 1,024 prompt tokens of the second round's first request, how many are found
    # stub: ttft=None,  # median TTFT of the first round, divided by that of the second
    # stub: total=None,  # median total time of the first round, divided by that of the second
    # stub: publish=None,  # "the first", "the second" or "the third": whose times say nothing about new prompts
    # stub: loop=None,  # "open loop" or "closed loop": where the 95th percentile of TTFT is longer
    # solution:
    found=1008,
    ttft=3.4,
    total=1.24,
    publish="the second",
    loop="open loop",
    # end
)

# %% [markdown]
# ## Run
#
# Nothing is computed here. The engine, its cache and its scheduler are real, but the model is replaced by a formula that says how long an H100 with Llama-3.1-8B would take for each step.
# **All times are simulated.** That has one advantage: everybody gets the same numbers, so that they can be checked.

# %%
rounds = lesson.run("rounds", "found", "ttft", "total", "publish", "loop")
opened = lesson.run("open", "found", "ttft", "total", "publish", "loop")


def of_round(letter):
    """The reports of one round: A, B or C."""
    return [r for r in rounds.report.requests if r.id.startswith(letter)]


first, again, fresh = of_round("A"), of_round("B"), of_round("C")
say(f"{len(rounds.report.requests)} requests in three rounds and {len(opened.report.requests)} in the open loop were served; simulated for {rounds.trace.header.hardware['name']}.")

# %% [markdown]
# ## Reveal
#
# First your predictions. Then a chart of all requests: at each time, how many of the twenty had their first token, and how many their whole answer. Last the player, where the second round's
# first prompt is looked up.

# %%
def median(requests, what):
    return spread([what(r) for r in requests]).p50


def cached(requests):
    return sum(r.cached_tokens for r in requests)


warm = min((first, again, fresh), key=lambda requests: -cached(requests))
look_up = events(rounds, "request.matched", request="B1")[0]
closed_p95, open_p95 = [sorted(r.ttft for r in requests)[18] for requests in (first, opened.report.requests)]
lesson.reveal(
    rounds,
    found=(look_up.length, look_up.seq),
    ttft=median(first, lambda r: r.ttft) / median(again, lambda r: r.ttft),
    total=median(first, lambda r: r.finished - r.arrived) / median(again, lambda r: r.finished - r.arrived),
    publish="the first" if warm is first else "the second" if warm is again else "the third",
    loop="open loop" if open_p95 > closed_p95 else "closed loop",
)

# %%
def staircase(name, times):
    """At each of the times, in milliseconds: the share of all requests that had it by then."""
    return Curve(name=name, points=[Point(1000 * t, 100 * (i + 1) / len(times)) for i, t in enumerate(sorted(times))])


steps = [
    staircase("TTFT, first round", [r.ttft for r in first]),
    staircase("TTFT, second round", [r.ttft for r in again]),
    staircase("total, first round", [r.finished - r.arrived for r in first]),
    staircase("total, second round", [r.finished - r.arrived for r in again]),
]
axes = {"x": "milliseconds, simulated (logarithmic)", "y": "requests that had it by then, %"}
chart(
    draw(Chart(kind="distribution", title="", curves=steps, **axes)),
    "Left: first tokens. Right: whole answers. The same prompts twice; n = 20 each. The second round is warm.",
)

# %%
show(rounds, look_up.seq, request="B1")

# %% [markdown]
# ## What happened
#
# In the second round nearly all prompt tokens were found, so the first token came after little more than one step. The answers still came one token after another,
# only a little quicker because no other client's prefill came in between. So the whole requests gained far less. The third round was as slow as the first: it was no faster server, only a warm cache.
# In the open loop a queue grew, which four waiting clients can never show.
#
# ## Exercise 1: three times from raw events
#
# Never trust a summary that you cannot recompute. `raw` below reads from the trace when a request came and when each of its tokens did. Return TTFT, TPOT and total in seconds.
# A request with one token has no TPOT, one with none has no TTFT and no total either: return `None` for what is not there.

# %%
def raw(run, request):
    """When a request came, and the times of its tokens, from the run's raw events."""
    came = events(run, "request.arrived", request=request)[0].arrived
    tokens = []
    for plan, step in zip(events(run, "step.planned"), events(run, "step.finished"), strict=True):
        if request in plan.members:
            tokens += [step.t] * step.emitted[plan.members.index(request)]
    return came, tokens


def metrics(came, tokens):
    """(TTFT, TPOT, total) in seconds, of a request that came at `came` and whose tokens came at the times in `tokens`."""
    # stub: raise Unfinished("tokens[0] - came is the TTFT, tokens[-1] - came the total; from tokens[0] to tokens[-1] there are len(tokens) - 1 tokens; mind empty lists and lists of one")
    # solution:
    if not tokens:
        return None, None, None
    tpot = (tokens[-1] - tokens[0]) / (len(tokens) - 1) if len(tokens) > 1 else None
    return tokens[0] - came, tpot, tokens[-1] - came
    # end


lesson.check("metrics", metrics)

# %% [markdown]
# ## Exercise 2: a percentile, and by which method
#
# There are many definitions, and tools differ. Here it is the *nearest rank*: sort the `n` values; the p-th percentile is value number `p × n / 100`, rounded **up**, counted from one.
# It is always a value that was measured. For no values return `None`. With your two functions every figure of the table after it comes from raw events.

# %%
def percentile(values, p):
    """The p-th percentile of the values by nearest rank; p is above 0 and at most 100."""
    # stub: raise Unfinished("sort the values, then take number math.ceil(p * n / 100), counted from one; the list itself counts from zero, so subtract one. No values: return None")
    # solution:
    import math

    if not values:
        return None
    return sorted(values)[math.ceil(p * len(values) / 100) - 1]
    # end


lesson.check("percentile", percentile)

# %%
sheet = {}
for name, run, requests in [
    ("first", rounds, first),
    ("second", rounds, again),
    ("third", rounds, fresh),
    ("open loop", opened, opened.report.requests),
]:
    ttft, tpot, total = zip(*[metrics(*raw(run, r.id)) for r in requests], strict=True)
    seconds = max(r.finished for r in requests) - min(r.arrived for r in requests)
    sheet[name] = {
        "n": len(ttft),
        "TTFT p50, ms": 1000 * percentile(ttft, 50),
        "TTFT p95, ms": 1000 * percentile(ttft, 95),
        "TPOT p50, ms": 1000 * percentile(tpot, 50),
        "total p50, ms": 1000 * percentile(total, 50),
        "tokens a second": sum(len(r.output_ids) for r in requests) / seconds,
        "prompt tokens cached, %": 100 * cached(requests) / sum(r.prompt_tokens for r in requests),
    }
rows = [[name, *row.values()] for name, row in sheet.items()]
table("From raw events, percentiles by nearest rank, simulated", ["round", *sheet["first"]], rows)

# %% [markdown]
# ## Exercise 3: the caption that the data allow
#
# Below are captions for these results. Every number in them is right. Some say more than the data do, or leave out what a reader must know. A good caption names what was compared, how many
# values there are, whether the cache was warm, and that the times are simulated where they are. Which ones would you put your name to?

# %%
a, b, c, _ = sheet.values()
longest = 1000 * percentile([r.ttft for r in first], 99)
captions = {
    "A": f"Simulated, closed loop of 4 clients, n = {a['n']} each: median TTFT {a['TTFT p50, ms']:.1f} ms with a cold cache, "
    f"{b['TTFT p50, ms']:.1f} ms when the same prompts came again (warm).",
    "B": f"Tuning made our server {a['TTFT p50, ms'] / b['TTFT p50, ms']:.1f} times faster.",
    "C": f"Simulated, closed loop of 4 clients, n = {a['n']} each: the median request took {a['total p50, ms']:.0f} ms in all with a cold cache, "
    f"{b['total p50, ms']:.0f} ms with a warm one.",
    "D": f"99 % of our users get their first token within {longest:.0f} ms.",
    "E": f"Throughput: {b['tokens a second']:.0f} tokens a second.",
    "F": f"Simulated, closed loop of 4 clients, n = {c['n']}: new prompts of the same lengths found {c['prompt tokens cached, %']:.0f} % "
    f"in the cache; median TTFT {c['TTFT p50, ms']:.1f} ms.",
    "G": f"With any number of users, 95 % wait less than {a['TTFT p95, ms'] + 0.1:.0f} ms for their first token.",
}
table("Captions", ["", "caption"], [[letter, text] for letter, text in captions.items()])

# %%
# stub: honest = None  # a set of letters, as {"A", "D"}
# solution:
honest = {"A", "C", "F"}
# end
lesson.check("caption", honest)

# %% [markdown]
# ## Three questions about your own run
#
# A small run with times of its own, drawn for you alone. `lesson.own.facts` names its requests, `lesson.own.run` is the run; your functions from above can read it. Answers in milliseconds.

# %%
lesson.questions()

# %%
# stub: first_answer, second_answer, third_answer = None, None, None
# solution:
names = lesson.own.facts["requests"].split()
times = {name: metrics(*raw(lesson.own.run, name)) for name in names}
first_answer = 1000 * times["Q2"][0]
second_answer = 1000 * times["Q3"][1]
third_answer = 1000 * percentile([times[name][0] for name in names], 60)
# end
lesson.answer(first_answer, second_answer, third_answer)

# %% [markdown]
# ## On a real server
#
# - **SGLang** brings `python -m sglang.benchmark.serving`. It prints mean, median and percentiles of TTFT, TPOT and total time, with the request rate and the most requests at once, and a section on the cache: prompt tokens, cached
#   tokens, hit rate. Read that section first. The server's own histograms are `sglang:time_to_first_token_seconds` and `sglang:e2e_request_latency_seconds`, its counters `sglang:prompt_tokens_total` and `sglang:cached_tokens_total`.
#   Its gauge `sglang:cache_hit_rate` tells of the last prefill alone; take counters before and after a run instead.
# - **vLLM**: read `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` before and after the run. The growth of the second, divided by that of the first, is the hit rate of this run. With `--no-enable-prefix-caching` no run is warm.
# - Use another seed for each run, or start the server anew, and say which of the two you did.

# %%
lesson.finish()
