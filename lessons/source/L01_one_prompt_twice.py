# %%
from workbench.figures.twice import moved, ties, twice
from workbench.lessons import Lesson, Unfinished, chart, events, show

lesson = Lesson("L1")
lesson

# %% [markdown]
# ## The idea
#
# Before a model can answer, it has to read. For every token of the prompt it computes **keys** and **values** (the KV): what it needs of that token
# from then on. This pass over the prompt is the **prefill**. Then it writes its answer, one pass for each token: the **decode**.
#
# Many prompts begin alike: the same instructions, the same handbook, the same chat so far. If a server keeps the KV of a beginning, the next prompt that begins with it
# has less to compute, and its first token comes sooner. The time from arrival to the first token is called **TTFT**.
#
# What does that save, exactly, and is the answer still the same? You will ask a real, small model (SmolLM2, with `135` million parameters) on this machine's CPU.

# %% [markdown]
# ## Predict
#
# The prompt is a library's staff handbook of about `1000` tokens, and a question. It comes once (cold: nothing is known), then again word for word (warm), and then
# with another question at its end. Before you guess the first number, ask yourself where the first token of the answer comes from.

# %%
lesson.predict(
    # stub: computed=None,  # tokens that the engine computes when the same prompt comes again
    # stub: tail=None,  # tokens that it computes when only the question at the end is new
    # stub: ratio=None,  # how many times sooner the first token comes, warm against cold: "less than 2", "2 to 5" or "more than 5"
    # stub: pairs=None,  # ten short prompts, each cold and then warm: in how many pairs does the warm one come sooner, 0 to 10
    # stub: same=None,  # are the answer's tokens the same and their log-probabilities equal to a thousandth, "yes" or "no"
    # solution:
    computed=1,
    tail=14,
    ratio="more than 5",
    pairs=10,
    same="yes",
    # end
)

# %% [markdown]
# ## Run
#
# The first run is the handbook. The second takes ten pieces of it as ten prompts, each put twice. A token of its own in front keeps the pieces apart. Loading the model takes a moment.

# %%
model = lesson.model("float32")
once = lesson.run("twice", "computed", "tail", "ratio", "pairs", "same", loaded=model, logprobs=20)
ids = events(once, "request.arrived", request="cold")[0].prompt

asked = []
for i in range(10):
    piece = {"tokens": [1000 + i, *ids[70 * i : 70 * i + 160]], "max_new_tokens": 1}
    asked += [{"id": f"cold {i}", **piece, **({"after": f"warm {i - 1}"} if i else {})}, {"id": f"warm {i}", **piece, "after": f"cold {i}"}]
ten = lesson.run({"name": "ten pairs", "engine": once.scenario.engine.model_dump(), "requests": asked}, loaded=model)

# %% [markdown]
# ## Reveal
#
# Counts of tokens come from the trace. Times come from this machine's clock, so yours will differ; only their *order* is counted.

# %%
def told(run, request):
    """Token by token of an answer: which it was, and the best ones (`top`) with their log-probabilities."""
    return events(run, "token.emitted", request=request)


pairs = [(dict(a.top), dict(b.top)) for a, b in zip(told(once, "cold"), told(once, "warm"), strict=True)]
apart = max(abs(a[token] - b[token]) for a, b in pairs for token in a.keys() & b.keys())
report = {r.id: r for r in once.report.requests}
admitted = {e.request: e for e in events(once, "request.admitted")}
times = {r.id: 1000 * r.ttft for r in ten.report.requests}
cold, warm = [times[f"cold {i}"] for i in range(10)], [times[f"warm {i}"] for i in range(10)]
ratio = report["cold"].ttft / report["warm"].ttft
lesson.reveal(
    once,
    computed=(report["warm"].computed_tokens, admitted["warm"].seq),
    tail=(report["tail"].computed_tokens, admitted["tail"].seq),
    ratio="less than 2" if ratio < 2 else "2 to 5" if ratio <= 5 else "more than 5",
    pairs=sum(w < c for c, w in zip(cold, warm, strict=True)),
    same="yes" if report["warm"].output_ids == report["cold"].output_ids and apart < 1e-3 else "no",
)

# %%
counted = {name: (report[name].cached_tokens, report[name].computed_tokens) for name in ("cold", "warm", "tail")}
whole = [report[name].finished - report[name].arrived for name in ("cold", "warm")]
chart(
    twice(counted, {"cold": cold, "warm": warm}),
    f"Above: the handbook. Below: ten pairs of 161 tokens. For the handbook the first token came {ratio:.0f} times sooner, "
    f"the whole answer of 4 tokens {whole[0] / whole[1]:.1f} times.",
)

# %%
show(once, admitted["warm"].seq, request="warm")

# %% [markdown]
# ## What happened
#
# The second time, all tokens but one were found. The last one always runs, because the scores of the next token (its **logits**) come out of a pass, and
# no pass was stored, only its KV. With another question, the engine computed from the first token that differs: the question and the few tokens by which the
# chat's template opens the answer.
#
# Is it the same answer? The last prediction asked for more than equal tokens: of the best tokens at each place, no log-probability may move by more than `1e-3`. In
# `float32` it holds; the caption below says how close they were.
#
# Then the question that the trade argues about: lower precision. Prompts of `70` tokens are read cold, and warm behind `37` stored ones, both in `float32` and in
# `bfloat16`, which keeps about three digits. The cut is at no multiple of `16`, so that the sums inside fall into other groups than before.

# %%
prompts = [ids[45 * i : 45 * i + 70] for i in range(20)]
wanted = [{"id": f"R{i}", "tokens": p, "max_new_tokens": 6, "ignore_eos": True} for i, p in enumerate(prompts)]
stored = [{"id": f"S{i}", "tokens": p[:37], "max_new_tokens": 0} for i, p in enumerate(prompts)]
behind = stored + [one | {"after": "S19"} for one in wanted]

found = {}
for dtype in ("float32", "bfloat16"):
    engine = {"executor": "model", "device": "cpu", "dtype": dtype, "pages": 4096, "max_running": 32}
    arms = [({"cache": "off"}, wanted), ({}, behind)]
    runs = [lesson.run({"engine": engine | more, "requests": asked}, loaded=lesson.model(dtype), logprobs=20) for more, asked in arms]
    found[dtype] = [point for one in wanted for point in moved(*(told(run, one["id"]) for run in runs))]

flips = [point for point in found["bfloat16"] if point[2]]
gaps = [gap for gap, _, _ in flips or found["bfloat16"]]
if flips:
    said = f"{len(flips)} answers took another token, where the two best were at most {max(gaps):.2g} nat apart: "
    said += "near ties, not a bug" if max(gaps) < 0.5 else "too wide for a near tie, so look for the cause"
else:
    said = f"no answer took another token in this run, and the smallest gap was {min(gaps):.2g} nat"
chart(ties(found), f"Handbook, float32: log-probabilities differ by at most {apart:.0e}. The {len(prompts)} prompts here: {sum(p[2] for p in found['float32'])} other tokens in float32; in bfloat16 {said}.")

# %% [markdown]
# A dot on or above the dashed line can tip: what moved is as much as what kept the two tokens apart. Dots that lie far to the right never do. (A **nat** is the unit of a natural logarithm: log-probabilities
# that are one nat apart stand for probabilities that differ by the factor `2.718`.) Lesson 3 says why the sums are not the same.
#
# ## Exercise: a near tie, or wrong?
#
# `cold` and `warm` list the best tokens of one place, as `(token, log-probability)`, the best first. Say `"wrong"` if a token that both list moved by more than `tolerance`. Otherwise say
# `"same"` if the best token is the same, and `"near tie"` if it is not.

# %%
def verdict(cold, warm, tolerance):
    """`same`, `near tie` or `wrong`, for one place of an answer."""
    # stub: raise Unfinished("make both a dict; look at the largest difference of the tokens in both first, and only then at who comes first")
    # solution:
    a, b = dict(cold), dict(warm)
    if any(abs(a[token] - b[token]) > tolerance for token in a.keys() & b.keys()):
        return "wrong"
    return "same" if cold[0][0] == warm[0][0] else "near tie"
    # end


lesson.check("verdict", verdict)

# %% [markdown]
# ## Exercise: the receipt
#
# Read a run's trace and write down, for each request, what it found, what it computed, and how long it waited for its first token. `events(run, kind)` gives the events of a kind, in order. You need
# `request.arrived`, `request.admitted` (with `cached` and `computed`) and `request.first_token`. Each has `request` and `t`, the seconds since the run began. Here requests also wait for each other.

# %%
def receipt(run):
    """Request -> (tokens found, tokens computed, seconds to the first token)."""
    # stub: raise Unfinished("time to first token counts from request.arrived, the wait in the queue included; make a dict of the arrivals first")
    # solution:
    arrived = {e.request: e.t for e in events(run, "request.arrived")}
    first = {e.request: e.t for e in events(run, "request.first_token")}
    return {e.request: (e.cached, e.computed, first[e.request] - arrived[e.request]) for e in events(run, "request.admitted")}
    # end


lesson.check("receipt", receipt)

# %% [markdown]
# ## Three questions about your own run
#
# Short prompts on a beginning of your own, read by the same model. `lesson.own.run` is the run.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
own = receipt(lesson.own.run)
first = own["again"][1]
second = sum(cached for cached, _, _ in own.values())
third = 1000 * own["first"][2]
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** writes a line for each prefill: `#new-token` were computed, `#cached-token` found. The metric `sglang:time_to_first_token_seconds` is TTFT as the server sees it; `--disable-radix-cache` gives the cold arm.
# - **vLLM**: `--no-enable-prefix-caching` gives the cold arm, `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` count tokens.
# - In both, a prompt's last token is computed even when all is known. If a warm answer differs from the cold one, ask for log-probabilities and look at the gap before you suspect the cache.

# %%
lesson.finish()
