# %%
import numpy as np

from workbench.experiments.attention import TwoLayers, differences
from workbench.figures.changed import changed
from workbench.lessons import Lesson, Unfinished, chart, events, show, table

lesson = Lesson("L3")
lesson

# %% [markdown]
# ## The idea
#
# A cache hands one request the keys and values that another has computed. That is only right if they are the very numbers that the second
# would have computed itself. When is that so?
#
# A model is a stack of layers. In each, every token makes three rows of numbers from what it has so far: a **query**, a **key** and a **value**.
# Then comes **attention**: the query is compared with the keys of all tokens up to its own, and the values are mixed accordingly. The mix is added
# to what the token has, and goes on to the next layer. Keys and values are what a server keeps: the KV.
#
# Two facts decide everything. A token looks only *back* (that is what causal means). And queries and keys are turned by their position, values are not.
#
# Here two such layers are a few lines of NumPy, with random weights and `24` tokens. It is small enough to look at every row.

# %% [markdown]
# ## Predict
#
# Token 7 becomes another token. Which rows change? Draw two rows of circles, one a layer, with arrows for who reads whom, and follow the change.

# %%
lesson.predict(
    # stub: first=None,  # tokens whose keys or values change in layer 1, 0 to 24
    # stub: second=None,  # the same in layer 2
    # stub: shifted=None,  # "the keys", "the values", "both" or "neither"
    # stub: suffix=None,  # "less than 1e-12", "about 1e-6" or "more than 1e-3"
    # stub: found=None,  # tokens of the changed prompt that the engine's cache finds
    # stub: inserted=None,  # tokens that it finds if one new token stands in front
    # solution:
    first=1,
    second=17,
    shifted="the keys",
    suffix="less than 1e-12",
    found=7,
    inserted=0,
    # end
)

# %% [markdown]
# ## Run
#
# `run` gives what the layers answer for each token, and their state: keys and values, layer by layer. `differences` compares two states, row by row.
# Then the real engine serves the same edits with a puppet for a model. It compares no floats: it compares tokens.

# %%
edits = lesson.run("edits", "first", "second", "shifted", "suffix", "found", "inserted")
model = TwoLayers(seed=0, rotary=True)
ids = np.random.default_rng(1).integers(0, 100, 24)
other = ids.copy()
other[7] = (other[7] + 1) % 100

whole, state = model.run(ids)
cases = {
    "token 7 is another": differences(state, model.run(other)[1]),
    "every position one higher": differences(state, model.run(ids, position=1)[1]),
    "one token in front": differences(state, model.run(np.append(42, ids))[1], ahead=1),
}
_, prefix = model.run(ids[:16])
answer, both = model.run(ids[16:], before=prefix)  # 8 tokens behind 16 stored ones
apart = np.abs(answer - whole[16:]).max()
cases["16 kept, 8 computed behind them"] = differences(state, both)

# %% [markdown]
# ## Reveal
#
# First the numbers, then every row in a picture, then the engine in the player. It keeps the same rule without ever looking at a float:
# it goes along the tokens and stops where they part.

# %%
edited, moved = cases["token 7 is another"], cases["every position one higher"]
rows = [sum(k > 0 or v > 0 for k, v in zip(edited[f"layer {n}, keys"], edited[f"layer {n}, values"], strict=True)) for n in (1, 2)]
which = (any(moved["layer 1, keys"]), any(moved["layer 1, values"]))
matched = {e.request: e for e in events(edits, "request.matched")}
lesson.reveal(
    edits,
    first=rows[0],
    second=rows[1],
    shifted={(True, False): "the keys", (False, True): "the values", (True, True): "both", (False, False): "neither"}[which],
    suffix="less than 1e-12" if apart < 1e-12 else "about 1e-6" if apart < 1e-3 else "more than 1e-3",
    found=(matched["changed"].length, matched["changed"].seq),
    inserted=(matched["inserted"].length, matched["inserted"].seq),
)

# %%
chart(changed(cases), "Each cell: one token's row, compared with the same token's row in the first run.")

# %%
show(edits, matched["changed"].seq, request="changed")

# %% [markdown]
# ## What happened
#
# In layer 1 a row is made from its own token alone, so one token's rows changed. Every later token then *read* it, and carried the change into
# layer 2. Earlier tokens never look ahead: their rows are the same to the last bit, and they may be reused.
#
# Turning every position by one changes the first layer's keys and no values. What a token reads stays the same, because only the *distance*
# of two turned rows counts. A stored key still has its old position in it. And with a token in front, everybody reads one token more: from layer 2 on nothing is as it was.
#
# A deeper model only adds layers of the second kind. So KV may be reused for an unbroken common beginning, and for nothing else.
#
# ## Where floats are not exact
#
# Floats round after every step, so the *order* of a sum matters a little: `(0.1 + 0.2) + 0.3` is not `0.1 + (0.2 + 0.3)` in Python. A GPU that attends over a
# stored prefix may split its sums elsewhere than for a whole prompt. Below, both kinds of difference: the prefix kept rightly, kept wrongly,
# and one attention step over `4096` values, summed in one go and in two parts.

# %%
wrong, truth = model.run(other[16:], before=prefix)[0], model.run(other)[0]
lines = [
    ["prefix kept, and it is the same (float64)", f"{apart:.0e}" if apart else "0, the same bits"],
    ["prefix kept although token 7 is another (float64)", f"{np.abs(wrong - truth[16:]).max():.2f}"],
]
rng = np.random.default_rng(2)
weights, values = rng.random((64, 4096)), rng.standard_normal((4096, 64))
weights /= weights.sum(axis=1, keepdims=True)
for dtype in (np.float64, np.float32, np.float16):
    w, v = weights.astype(dtype), values.astype(dtype)
    parts = w[:, :2000] @ v[:2000] + w[:, 2000:] @ v[2000:]
    lines.append([f"one sum, split at another place ({np.dtype(dtype).name})", f"{np.abs(w @ v - parts).max():.0e}"])
table("How far apart the answers are", ["what", "largest difference"], lines)

# %% [markdown]
# Real engines report the same. In vllm#5543 cached and fresh log-probabilities differ by about 0.06 nat (the unit of a natural logarithm), enough to tip
# an exact tie. In vllm#52701 they are equal to the bit in a batch-invariant mode and drift to 2.6e-02 without it. In sglang#34683, 18 of 40 greedy
# answers flip on one model. sglang PR#10721 puts the splits at fixed places to make runs repeatable.
#
# So say it exactly: reuse is *mathematically* exact, and numerically equal **up to rounding**. A flip at a near tie (two tokens that score almost alike) is no bug. A flip at a wide gap deserves a search.

# %% [markdown]
# ## Exercise: attention behind stored KV
#
# The cache holds keys and values of the first `stored` tokens; `queries` belong to the new tokens alone. New token `i` stands at position `stored + i` and may read
# every row up to its own. Compare with `queries @ keys.T / sqrt(width)`, hide what lies ahead, make each row of weights add up to 1 (softmax), mix the values.

# %%
def continue_behind(queries, keys, values, stored):
    """Answers [new, width] for `queries` [new, width] over `keys` and `values` [stored + new, width]."""
    # stub: raise Unfinished("scores[i, j] is hidden (-inf) where j > stored + i; then np.exp(scores - row maximum), divide by the row sum, times values")
    # solution:
    scores = queries @ keys.T / np.sqrt(queries.shape[1])
    ahead = np.arange(len(keys)) > stored + np.arange(len(queries))[:, None]
    scores = np.where(ahead, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values
    # end


lesson.check("continue", continue_behind)

# %% [markdown]
# ## Exercise: what an edit leaves
#
# Given the stored prompt and the edited one, list the positions in `edited` whose stored KV may be used. One thing is easily forgotten: the next
# token comes out of a pass over the *last* prompt token, so that one is always computed. The engine serves both prompts and is asked as well.

# %%
def reusable(stored, edited):
    """Positions in `edited` whose KV the cache may provide, in order."""
    # stub: raise Unfinished("go through both lists together and stop for good at the first difference; the last position of `edited` never counts")
    # solution:
    kept = []
    for position, (old, new) in enumerate(zip(stored, edited[:-1], strict=False)):
        if old != new:
            break
        kept.append(position)
    return kept
    # end


lesson.check("reusable", reusable)

# %% [markdown]
# ## Three questions about your own run
#
# One prompt and two edits, drawn for you alone. `lesson.own.run` is the engine's run of them.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
own = {e.request: e for e in events(lesson.own.run, "request.admitted")}
first = own["changed"].cached
second = own["inserted"].computed
third = own["changed"].computed
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang**: `--disable-radix-cache` gives the cold answer to compare with. The log line of a prefill shows `#cached-token` and `#new-token`.
#   A request is matched up to all but its last token, as here. The metric `sglang:cached_tokens_total` counts what was reused.
# - **vLLM**: `--no-enable-prefix-caching` does the same. A block's hash covers its tokens *and* the hash before it, so equal tokens behind another
#   beginning do not match. `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` count tokens.
# - Prompts under different adapters or salts share nothing, in either: other weights make other keys and values of the same tokens.

# %%
lesson.finish()
