# %%
from IPython.display import display

from workbench.calculators import GIB, MODELS, kv_bytes, load_or_compute
from workbench.experiments.result import Chart, Curve, Point
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table
from workbench.lessons.checks.l7 import LINK, QUESTION, again, first_token

lesson = Lesson("L7")
display(lesson)
h100 = lesson.run(again(64, None)).trace.header.rates  # what the engine knows of the simulated machine
models = [MODELS[name] for name in ("llama-2-7b", "llama-3.1-8b", "qwen2.5-1.5b")]
rows = [[m.name, m.layers, m.kv_heads, m.head_width, m.source] for m in models]
title = f"Three published models. A simulated H100 prefills {h100['prefill_rate']:,.0f} tokens of Llama-3.1-8B a second"
table(title, ["model", "layers", "KV heads", "head width", "source"], rows)

# %% [markdown]
# ## The idea
#
# For every token of a sequence a model keeps its keys and values in every layer: its **KV**. How much is that? In each layer there are some *KV heads*, and each keeps for the token one key and one value, both as many
# numbers long as the head is wide:
#
# > bytes a token = 2 × layers × KV heads × head width × bytes a number
#
# Older models have a key and a value head for each query head. With **grouped-query attention** several query heads share one, and the product shrinks. So it does when numbers are kept in `8` bits, one byte each, in place of `16`.
#
# All memory for KV is the **pool**. What is evicted from it can be copied to the host's memory (**offload**) and come back over the link between the two. Two ways lead to the same KV:
#
# - *load it*: bytes divided by the speed of the link;
# - *compute it again*: tokens divided by the prefill rate.
#
# And the pool has to hold answers too, which grow by a token a step. Whoever lets requests in should keep a **reserve**. When the pool is full, a running request is *retracted*: it gives its pages back and waits again.

# %% [markdown]
# ## Predict
#
# The table above has all you need; take a calculator. A GiB is `2**30` bytes, a GB/s is `10**9` bytes a second.

# %%
lesson.predict(
    # stub: each=None,  # bytes of KV a token, Llama-3.1-8B, numbers of 2 bytes
    # stub: llama2=None,  # tokens of Llama-2-7B in 24 GiB, numbers of 2 bytes
    # stub: llama3=None,  # of Llama-3.1-8B
    # stub: qwen=None,  # of Qwen2.5-1.5B
    # stub: eight=None,  # of Llama-3.1-8B with numbers of 1 byte
    # stub: even=None,  # GB/s from which on loading takes less than computing, Llama-3.1-8B at the prefill rate above
    # stub: short=None,  # 512 tokens on the host, link of 6 GB/s: which way is the first token there sooner, "load" or "compute"
    # stub: long=None,  # the same with 8,192 tokens
    # stub: pushed=None,  # twelve requests, let in as soon as the prompt fits: is "nobody" or "somebody" sent back later
    # solution:
    each=131_072,
    llama2=49_152,
    llama3=196_608,
    qwen=898_779,
    eight=393_216,
    even=131_072 * h100["prefill_rate"] / 1e9,
    short="compute",
    long="load",
    pushed="somebody",
    # end
)

# %% [markdown]
# ## Run
#
# Nothing is computed here: the **cost** executor says how long each pass takes on an H100, by its data sheet, at an assumed share of its peak. All times are simulated.
#
# A prefix is served. Another prompt pushes it off the device, while the host keeps a copy. Then the prefix comes again with a new question of `16` tokens. Once with the copy on the host, once without, for several lengths.

# %%
lengths = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
decided = {n: lesson.run(again(n, LINK), "each", "even", "short", "long") for n in lengths}
computed = {n: first_token(lesson.run(again(n, None))) for n in lengths}
crowd = lesson.run("crowd", "pushed")


def loading(n):
    """Milliseconds: the load, and then a pass over the question alone, the prefix being there."""
    return 1000 * n * h100["kv_bytes"] / LINK + first_token(lesson.run(again(n, None, stays=True)))


loaded = {n: loading(n) for n in lengths}

# %% [markdown]
# ## Reveal
#
# Two ways to the first token, against the length of the prefix. The marks are what the engine took, deciding by itself.

# %%
ways = {"load it": loaded, "compute it again": computed, "what the engine took": {n: first_token(run) for n, run in decided.items()}}
took = {n: "loads" if run.report.totals.loaded_tokens else "computes" for n, run in decided.items()}
curves = [Curve(name=name, points=[Point(n, y, took[n]) for n, y in line.items()]) for name, line in ways.items()]
figure = draw(Chart(kind="times", title="", x="prefix, tokens", y="until the first token, ms (simulated)", curves=curves))
chart(figure, "Llama-3.1-8B on a simulated H100, link of 6 GB/s. Marks lie a hair below a line where a page of the prefix had stayed on the device.")

# %%
llama2, llama3, qwen = models
even = load_or_compute(h100["kv_bytes"], LINK, 1, h100["prefill_rate"]).even_link / 1e9
admitted = events(decided[1024], "request.admitted", request="again")[0]
lesson.reveal(
    decided[1024],
    each=int(h100["kv_bytes"]),
    llama2=24 * GIB // kv_bytes(llama2.layers, llama2.kv_heads, llama2.head_width, 2),
    llama3=24 * GIB // kv_bytes(llama3.layers, llama3.kv_heads, llama3.head_width, 2),
    qwen=24 * GIB // kv_bytes(qwen.layers, qwen.kv_heads, qwen.head_width, 2),
    eight=24 * GIB // kv_bytes(llama3.layers, llama3.kv_heads, llama3.head_width, 1),
    even=(even, admitted.seq),
    short="load" if loaded[512] < computed[512] else "compute",
    long="load" if loaded[8192] < computed[8192] else "compute",
    pushed="somebody" if events(crowd, "request.retracted") else "nobody",
)

# %% [markdown]
# The decision in the player: at the right stand both times, as the engine weighed them.

# %%
load = lesson.run("load")
show(load, events(load, "request.admitted", request="again")[0].seq, request="again")

# %% [markdown]
# ## What happened
#
# *Bytes are a product.* A quarter of the KV heads makes a quarter of the bytes. Nothing else about a model's size comes in.
#
# *The engine weighs two divisions,* with one prefill rate for all lengths. By that rule the break-even is a link speed and length does not matter.
#
# *The clock of the simulated machine is not that simple.* A short prefix computed along with its question is nearly free, since the pass must read all weights anyway. A long one costs more than the rate says, as every token attends
# to all before it. So there is a crossing in length too, and below it the engine's one rate decides wrongly.
#
# *Whoever fits now may not fit later.* Answers grew, the pool ran full, and somebody had to start over.

# %%
crossing = next((n for n in lengths if loaded[n] < computed[n]), None)
wrong = [n for n in lengths if (took[n] == "loads") != (loaded[n] < computed[n])]
back = events(crowd, "request.retracted")
say(
    f"Simulated, at 6 GB/s: of the lengths tried, loading is sooner from {crossing:,} tokens on. "
    f"The engine loaded at {list(took.values()).count('loads')} of the {len(lengths)} lengths; its way was the slower one at {', '.join(f'{n:,}' for n in wrong) or 'none'}. "
    f"In the crowd {len(back)} times somebody was sent back, and {crowd.report.totals.recomputed_tokens} tokens were computed again."
)

# %% [markdown]
# ## Exercise: the arithmetic
#
# Return two numbers: the bytes of one token's KV, and the link speed in *bytes* a second at which loading and computing take the same. `rate` is the prefill rate in tokens a second.
#
# The check asks for published models, then asks the engine's pool whether it takes exactly as many pages as your bytes say, and then lets the engine decide just below your link speed and just above.

# %%
def arithmetic(layers, kv_heads, head_width, number_bytes, rate):
    """(bytes a token, bytes a second at which loading takes as long as computing)"""
    # stub: raise Unfinished("first the product from the idea; then set bytes / link equal to 1 / rate, for one token, and solve for the link")
    # solution:
    size = 2 * layers * kv_heads * head_width * number_bytes
    return size, size * rate
    # end


lesson.check("arithmetic", arithmetic)

# %% [markdown]
# ## Exercise: whom to let in
#
# The engine asks *your* rule for each waiting request whether it may enter: return `True` or `False`. Pages hold one token here. `waiting` has `.prompt` and `.matched` (tokens), `.may_produce` (tokens it may still say), and `.pages_free`
# (free now, or to be had by eviction). `running` is a list; each has `.held` (tokens whose KV it has already) and `.may_produce`.
#
# Nobody may be sent back, ever, even if all say as much as they may. And you may not be needlessly strict: the runs should take hardly more steps than with a plain safe rule.

# %%
def may_enter(waiting, running):
    """Whether this request may enter now."""
    # stub: raise Unfinished("sum up every page that may still be wanted: by this prompt beyond what matched, by its answer, and by the answers of all that run; compare with .pages_free")
    # solution:
    to_come = sum(one.may_produce for one in running)
    return waiting.pages_free >= waiting.prompt - waiting.matched + waiting.may_produce + to_come
    # end


lesson.check("admission", may_enter)

# %% [markdown]
# ## Three questions about your own run

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
admitted = events(lesson.own.run, "request.admitted", request="again")[0]
first = 1000 * admitted.load_seconds
second = 1000 * admitted.recompute_seconds
third = admitted.loaded
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang**: `--mem-fraction-static` sizes the pool; `sglang:max_total_num_tokens` says how many tokens it holds. `--enable-hierarchical-cache` keeps a host tier, `--hicache-ratio` sets its size. As read in
#   2026, whatever the host holds of a prompt is loaded if it is `10` tokens or more; no times are weighed. The reserve is `--schedule-conservativeness`; retractions are counted by `sglang:num_retracted_requests_total`, and the log warns of each.
# - **vLLM** admits by the pages a prompt needs now and sends the newest back when they run out. Offload is a connector's work. Watch `vllm:kv_cache_usage_perc`.
# - On either, measure before you believe: the time to first token with the host tier and without, for short prefixes and for long ones.

# %%
lesson.finish()
