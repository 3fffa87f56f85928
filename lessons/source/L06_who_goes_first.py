# %%
from statistics import mean

from workbench.figures.waiting import first_tokens, gantt
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table
from workbench.lessons.checks.l6 import ageing, finds, kind, overtook

lesson = Lesson("L6")
lesson

# %% [markdown]
# ## The idea
#
# When more requests wait than a server can run, somebody has to be first. The plain way is **FCFS**: first come, first served. A server with a prefix cache can do
# otherwise. It can look how much of each waiting prompt the cache knows *at this moment*, and take the longest first: **LPM**.
#
# In this lesson one request runs at a time, and each says a single token. Play three situations in your head.
#
# **Two families.** Six requests wait at once, `R1` to `R6`, on two handbooks in turns: `A B A B A B`. There is room for *one* handbook. Whatever was used longest ago is thrown out (lesson 5).
#
# **A stream.** Handbook `A` is known. One *cold* request asks about a handbook that nobody knows. With it comes a *hot* request about `A`, and at every step after that one more, `20` in all.
# A hot prompt matches `128` tokens; the cold one matches none. One is served a step.
#
# **A mix.** Eight requests wait at once, in turns: a long one whose handbook of `128` tokens is known and whose other `200` tokens are not, then a short one of `16` unknown tokens, and so on.
# Memory is ample.
#
# There is a way between the two policies. With **ageing**, a request counts as if it matched a few tokens more for every *pass* (one look at the queue, here one a step) that left it waiting:
#
# > key = matched tokens + N × passes waited, the largest first; of equals, the earlier arrival.

# %% [markdown]
# ## Predict

# %%
lesson.predict(
    # stub: fcfs_found=None,  # two families, FCFS: how many of the 6 find their handbook
    # stub: lpm_found=None,  # two families, LPM: how many of the 6
    # stub: second=None,  # two families, LPM: who is served second, "R2" to "R6"
    # stub: cold_fcfs=None,  # the stream, FCFS: how many of the 20 hot requests go before the cold one
    # stub: cold_lpm=None,  # the stream, LPM: how many go before it
    # stub: cold_aged=None,  # the stream, ageing with N = 8: how many go before it
    # stub: quicker=None,  # four long known and four short unknown requests at once: which has the lower mean time to first token, "fcfs" or "lpm"
    # solution:
    fcfs_found=0,
    lpm_found=4,
    second="R3",
    cold_fcfs=0,
    cold_lpm=20,
    cold_aged=16,
    quicker="fcfs",
    # end
)

# %% [markdown]
# ## Run
#
# Queue, admission and cache are the engine's own. The clock is virtual: a step takes `0.01` s and `0.001` s for each token that it computes. So all times here are simulated, and exact.
#
# The stream with ageing gets its order from a function outside the engine, as it will get it from you further down.

# %%
families = {policy: lesson.run(policy, f"{policy}_found", "second") for policy in ("fcfs", "lpm")}
streams = {policy: lesson.run("stream", "cold_fcfs", "cold_lpm", "cold_aged", policy=policy) for policy in ("fcfs", "lpm")}
streams["ageing"] = lesson.run("stream", plugs=ageing(8))
mixed = {policy: lesson.run("mixed", "quicker", policy=policy) for policy in ("fcfs", "lpm")}
rows = [[policy, " ".join(run.report.order), run.report.totals.computed_tokens] for policy, run in families.items()]
table("Two families: who was served when", ["policy", "order", "prompt tokens computed"], rows)

# %% [markdown]
# ## Reveal

# %%
means = {policy: mean(r.ttft for r in run.report.requests if r.id != "S") for policy, run in mixed.items()}
lesson.reveal(
    families["lpm"],
    fcfs_found=finds(families["fcfs"]),
    lpm_found=finds(families["lpm"]),
    second=(families["lpm"].report.order[1], events(families["lpm"], "request.admitted")[1].seq),
    cold_fcfs=overtook(streams["fcfs"]),
    cold_lpm=overtook(streams["lpm"]),
    cold_aged=overtook(streams["ageing"]),
    quicker=min(means, key=means.get),
)

# %% [markdown]
# The stream under LPM, one lane a request. Grey is waiting.

# %%
chart(gantt(streams["lpm"], kind), "Longest prefix first. The cold request came second, and is the last to be served.")

# %% [markdown]
# And the time to first token of every request, under all three orders.

# %%
chart(first_tokens(streams, kind, leave_out=["S"]), "Each mark is one request. What the cold one is spared, the hot ones wait a little longer for.")

# %% [markdown]
# The moment at which the cold request is served at last. Go back a few steps and ask why it was passed over; the queue's order stands at the right, with its keys.

# %%
show(streams["lpm"], events(streams["lpm"], "request.admitted", request="cold")[0].seq, request="cold")

# %% [markdown]
# ## What happened
#
# *The same cache finds more when the work is sorted.* In turns, each handbook is thrown out just before it is needed. LPM serves one family to its end and then the other.
#
# *LPM starves.* Nothing in its key is about time. As long as requests come that match more, the one that matches less waits: with twice the stream it would wait twice as long.
# With ageing it gains on every newcomer, pass by pass, until it is level. Its wait depends on match and N, and no longer on the stream.
#
# *A longer match is not less work.* In the mix the known prompts have long tails, and LPM lets them go first because of what is known. What is left to compute it does not look at.
#
# This is not only a toy's trouble. A user of SGLang reported from production in 2026 (sgl-project/sglang#31954): with LPM the median time to first token was 0.7 s, while requests that
# missed the cache, about 5% of all, made about 75% of the time that all waited together. The median looked fine. The proposal there is the ageing above.

# %%
totals = {policy: sum(r.ttft for r in run.report.requests) for policy, run in streams.items()}
cold = {policy: next(r.ttft for r in run.report.requests if r.id == "cold") for policy, run in streams.items()}
share = {policy: 100 * cold[policy] / totals[policy] for policy in streams}
say(
    f"Simulated: the cold request, one of {len(streams['lpm'].report.requests)}, makes {share['lpm']:.0f} % of all time to first token "
    f"under LPM, {share['fcfs']:.0f} % under FCFS and {share['ageing']:.0f} % with ageing. In the mix the mean is {means['fcfs']:.2f} s with FCFS "
    f"and {means['lpm']:.2f} s with LPM, though both find {mixed['lpm'].report.totals.cached_tokens} tokens."
)

# %% [markdown]
# ## Exercise: ageing
#
# Now the engine orders its queue by *your* function. It gets one waiting request and returns a whole number; **the smallest goes first**, and of equals the earlier arrival. LPM would be
# `return -waiting.matched`. A waiting request has `.matched` (tokens of its prompt that the cache knows now), `.waits` (passes that left it waiting), `.prompt` (its length) and `.arrived` (its place in the order of arrival).
#
# It is tried on two traces. On the stream above, and on one three times as long, at most `8` hot requests may go before the cold one. And on a long line of two families, a request of each at every step and
# room for one handbook, at least three quarters of what LPM finds must still be found. One of these is lost with too little ageing, the other with too much.

# %%
def order(waiting):
    """A whole number for each waiting request: the smallest goes first."""
    # stub: raise Unfinished("begin with `return -waiting.matched`, which is LPM, and let .waits count for some tokens; how many, so that 128 matched tokens are made up for in 8 passes?")
    # solution:
    return -(waiting.matched + 20 * waiting.waits)
    # end


lesson.check("ageing", order)

# %% [markdown]
# ## Three questions about your own run

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
report = lesson.own.run.report
first = sum((r.cached_tokens or 0) > 0 for r in report.requests)
second = report.order[-1]
third = next(r.wait_tokens for r in report.requests if r.id == lesson.own.facts["the third question is about"])
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang**: `--schedule-policy` takes `fcfs` (the default), `lpm`, `dfs-weight`, `lof` and `random`. With more than `128` waiting, `lpm` falls back to FCFS for that pass. The ageing proposed in #31723
#   would be a flag of its own. Watch `sglang:num_queue_reqs` and `sglang:queue_time_seconds`; the log line shows `#queue-req`.
# - **vLLM** serves in order of arrival, or by priorities that requests bring; its engine has no cache-aware order. Watch `vllm:num_requests_waiting`.
# - This engine has `policy: lpm-fair` as well: it bounds how many *tokens* may be computed for later arrivals first.
# - On any: look at the slowest requests and at the mean, not at the median alone.

# %%
lesson.finish()
