# %%
from workbench.experiments.result import Chart, Curve, Point
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table
from workbench.lessons.unseen import mine, p95

lesson = Lesson("capstone")
lesson

# %% [markdown]
# ## The task
#
# Somebody runs a service for several tenants (customers, each with their own data). All requests come at once, a **burst**, and memory does not hold everything. Each prompt has four parts: one that is the same
# for all, one of the tenant, one that changes with every request, and the question. You decide four things:
#
# - `order`: how the parts stand in the prompt, a list of their names;
# - `page_size`: `1`, `16` or `128` tokens;
# - `policy`: `"fcfs"` (first come, first served) or `"lpm"` (longest prefix match: who finds most in the cache is served first);
# - `eviction`: `"lru"` (least recently used goes first) or `"lfu"` (least often used goes first).
#
# Then you say beforehand what will come of it: the hit rate, and **p95 TTFT**, the time by which `95` of `100` requests have their first token. The traffic below was drawn for you alone.

# %%
trace = mine()
facts = trace.facts
table("Your burst", ["what", "how much"], trace.rows)

# %% [markdown]
# ## A practice burst
#
# Nobody computes here: a **simulated** card (an L4 with Llama-3.1-8B) says how long each step takes, from its data sheet. Token counts are exact; seconds are the simulation's. Eight requests run at a time,
# each answers one token, and a **barrier** holds a request back while another computes the very beginning that both share.
#
# First a smaller burst, with the settings as somebody left them. In a burst, prefills stand in line: by when nearly all are served depends on how many tokens have to be *computed*.

# %%
practice = lesson.run("practice")
slow = p95(r.ttft for r in practice.report.requests)
computed = practice.report.totals.computed_tokens
seconds_a_token = slow / computed
say(
    f"Practice: {practice.report.totals.prompt_tokens:,} prompt tokens, {computed:,} of them computed, hit rate {100 * practice.report.totals.hit_rate:.0f} %. "
    f"95 of 100 had their first token after {slow:.2f} s (simulated): {1e6 * seconds_a_token:.0f} microseconds for each computed token."
)

# %% [markdown]
# ## Predict
#
# Choose your settings, then do the arithmetic. How often does each part have to be computed, if everything goes well? All other prompt tokens are found. And the computed ones,
# at the pace of the practice burst, give the slow end of TTFT. Being near is enough: the card says how near.

# %%
# stub: settings = None  # {"order": [names of the four parts], "page_size": 1, "policy": "fcfs", "eviction": "lru"}
# stub: hit, slowest = None, None  # per cent of prompt tokens found; seconds until 95 of 100 have their first token
# solution:
rank = ["never", "tenant", "request"]
order = sorted(facts["parts"], key=lambda name: rank.index(facts["parts"][name]["changes"]))
settings = {"order": order, "page_size": 1, "policy": "lpm", "eviction": "lru"}
texts = {"never": 1, "tenant": facts["tenants"], "request": facts["requests"]}
needed = sum(part["tokens"] * texts[part["changes"]] for part in facts["parts"].values())
total = facts["requests"] * sum(part["tokens"] for part in facts["parts"].values())
hit, slowest = round(100 * (1 - needed / total)), round(needed * seconds_a_token, 2)
# end
lesson.predict(hit=hit, p95=slowest)

# %% [markdown]
# ## Run, then reveal
#
# Your burst under your settings, and under two others for comparison: the parts as they were listed, and yours with its first two parts swapped.

# %%
own = lesson.run(trace.scenario(settings), "hit", "p95")
ttft = {r.id: r.ttft for r in own.report.requests}
late = p95(ttft.values())
moment = next(e for e in events(own, "request.first_token") if ttft[e.request] == late)
lesson.reveal(own, hit=round(100 * own.report.totals.hit_rate), p95=(late, moment.seq))

# %%
first, second, *rest = settings["order"]
others = {"as listed": list(facts["parts"]), "yours, the first two parts swapped": [second, first, *rest]}
left = {"page_size": 16, "policy": "fcfs", "eviction": "lru"}
runs = {"yours": own} | {f"{name}; 16, fcfs": lesson.run(trace.scenario(left | {"order": other})) for name, other in others.items()}
points = {name: Point(p95(r.ttft for r in run.report.requests), 100 * run.report.totals.hit_rate) for name, run in runs.items()}
curves = [Curve(name=name, points=[point]) for name, point in points.items()]
figure = draw(Chart(kind="tradeoff", title="", x="p95 TTFT, seconds (simulated)", y="hit rate, % of prompt tokens", curves=curves))
chart(figure.update_yaxes(range=[-6, 106]), "Left is sooner, up is more reuse. Three ways to serve the same burst.")

# %%
show(own, moment.seq, request=moment.request)

# %% [markdown]
# ## What happened
#
# Whatever stands behind a part that changes with each request is lost, so that part belongs behind all others. What everybody shares comes first: put behind a tenant's part, it is kept once for each tenant.
# Memory holds a few tenants' parts at a time. Served in order of arrival, tenants push each other out; served by longest prefix, one tenant after the other is done, and each part is computed once.
# Large pages round every match down.
#
# In this simulation small pages cost nothing. On a real card the attention kernel may prefer larger ones; that has to be measured.

# %% [markdown]
# ## Exercise: the rule
#
# Write your choice as a rule that works for any facts like yours. It is tried on your burst and on one that you do not see. There it is set beside a grid of `36` settings that the check
# runs, and its p95 TTFT may be at most a twentieth above the grid's best. `facts["parts"]` has each part's `tokens` and what it `changes` with (`never`, `tenant`, `request`); the
# rest is `facts["tenants"]`, `facts["requests"]` and `facts["slots"]`, the tokens that memory holds.

# %%
def choose(facts):
    """Settings: order, page_size, policy, eviction."""
    # stub: raise Unfinished("sort the parts' names by how often they change, the most lasting first; then ask which page size loses least and which policy keeps a tenant's requests together")
    # solution:
    rank = ["never", "tenant", "request"]
    order = sorted(facts["parts"], key=lambda name: rank.index(facts["parts"][name]["changes"]))
    return {"order": order, "page_size": 1, "policy": "lpm", "eviction": "lru"}
    # end


lesson.check("choose", choose)

# %% [markdown]
# ## Exercise: what mattered
#
# Leave the order aside. Begin with the right settings, and make one of them wrong at a time: `page_size` `128`, `policy` `"fcfs"`, `eviction` `"lfu"`. Which makes p95 TTFT grow most on *your* burst? Guess first; then run the three, as above.

# %%
# stub: costliest = None  # "page_size", "policy" or "eviction"
# solution:
wrong = {"page_size": 128, "policy": "fcfs", "eviction": "lfu"}
grown = {key: p95(r.ttft for r in lesson.run(trace.scenario(choose(facts) | {key: value})).report.requests) for key, value in wrong.items()}
costliest = max(grown, key=grown.get)
# end
lesson.check("explain", costliest)

# %% [markdown]
# ## Three questions about your own run
#
# One more burst of your own, this time with room for everything. `lesson.own.run` is the run; its events carry `request` and `t`, in seconds.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
totals = lesson.own.run.report.totals
first = totals.computed_tokens
second = 100 * totals.cached_tokens / totals.prompt_tokens
third = p95(r.ttft for r in lesson.own.run.report.requests)
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang**: `--schedule-policy lpm` (the default is `fcfs`; with more than 128 waiting, lpm falls back to it, as its source of 2026-08 says), `--page-size`, `--radix-eviction-policy` (`lru`, `lfu`, `slru`, `priority`). Watch `sglang:cache_hit_rate` (of the last prefill batch alone),
#   `sglang:time_to_first_token_seconds` and the log's `#cached-token` and `#queue-req`.
# - **vLLM**: no cache-aware order in the engine; `--block-size` is the page size, and the cache evicts least recently used blocks. Watch `vllm:prefix_cache_hits` over `vllm:prefix_cache_queries`.
# - In both the order of the prompt's parts is yours alone. No flag mends a clock in front of it.

# %%
lesson.finish()
