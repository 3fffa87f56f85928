# %%
import math
import os
from pprint import pformat

from workbench import probe
from workbench.figures.staircase import staircase
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table

lesson = Lesson("L12")
lesson

# %% [markdown]
# ## The idea
#
# You cannot look into a server that somebody else runs. But you can ask it, and many servers say in each answer how many tokens of the prompt they had in their cache. Three questions can be settled
# in this way:
#
# - **In which portions does it share?** Send a prompt that grows by one word at a time, and watch the count. It goes up in steps, and the step is the server's block or page: its **granularity**.
# - **How long must a prompt be** before anything is found at all?
# - **How soon is it forgotten?** Send a prompt, then others, then the first one again.
#
# You need no server here. The workbench brings answers of three made-up servers, called *one*, *two* and *three*. They were **written for this lesson**: our own engine counted, and the counts were put into the
# formats that SGLang and vLLM publish. No real server was asked. If you have one, the same probe runs on it further down.

# %% [markdown]
# ## Predict
#
# An answer ends with a part like this one. The server counted `17` prompt tokens, and says nothing more:
#
# ```
# "usage": {"prompt_tokens": 17, "completion_tokens": 1, "total_tokens": 18, "prompt_tokens_details": null}
# ```
#
# The server of the next two questions keeps what it has computed in blocks of `16` tokens, and only whole blocks can be found. The last token of a prompt is always computed, because the answer starts from it.
# First, a prompt of 2 tokens is sent, then the same with one more token, and so on. Then, on a server with room for `24` blocks, one prompt of `65` tokens is sent, some others of the same length with
# nothing in common, and the first one again. What was not used for the longest time is thrown out first.

# %%
lesson.predict(
    # stub: missing=None,  # "zero" or "unknown": what such an answer tells of the cached tokens
    # stub: shortest=None,  # length of the first prompt of which anything is found
    # stub: gone=None,  # other prompts after which nothing of the first one is found
    # solution:
    missing="unknown",
    shortest=17,
    gone=6,
    # end
)

# %% [markdown]
# ## Run
#
# First our own engine plays the server, with blocks and scripted answers, so that you can see inside. Then the recorded answers are read. Each holds the answer as it would come over the network.

# %%
grow = lesson.run("grow", "missing", "shortest", "gone")
filler = lesson.run("filler", "missing", "shortest", "gone")
answers = probe.recorded()
growing = {server: [a for a in answers if a.server == server and a.fillers is None] for server in ("one", "two", "three")}
repeated = [a for a in answers if a.fillers is not None]  # server two: a prompt again, after so many others
say(f"{len(answers)} answers. {probe.about()}")

# %% [markdown]
# ## Reveal
#
# Above the card is one whole answer, and what was found of the first prompt after more and more others: the end of it went first. The player shows the engine
# after six of them; click a block and ask why the others left.

# %%
hit = next(e for e in events(grow, "request.matched") if e.length)
counts = {a.fillers: a.answer["usage"]["prompt_tokens_details"]["cached_tokens"] for a in repeated}
print(pformat(growing["two"][16].answer, sort_dicts=False))
print("found of the first prompt after 0, 1, 2, ... others:", *counts.values())
lesson.reveal(
    grow,
    missing="unknown",
    shortest=(int(hit.request[1:]), hit.seq),
    gone=min(fillers for fillers, count in counts.items() if count == 0),
)

# %%
show(filler, events(filler, "request.matched", request="again")[0].seq, request="again")

# %% [markdown]
# ## Exercise 1: read the count
#
# `answer` is a dictionary. The count may be in `answer["usage"]["prompt_tokens_details"]["cached_tokens"]`, as in the answer above. SGLang's own way of asking, `/generate`, has it in `answer["meta_info"]["cached_tokens"]` instead.
# On the way to it each part may be missing or `None`. Return the count as a number. If the server does not say, return `None`: unknown is not zero.

# %%
def cached(answer):
    """How many prompt tokens the server found, or None if it does not say."""
    # stub: raise Unfinished("(answer.get('usage') or {}) is a dictionary even if the part is missing or None; go on like that to prompt_tokens_details and .get('cached_tokens'), and if that is None, try meta_info")
    # solution:
    details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
    count = details.get("cached_tokens")
    if count is None:
        count = (answer.get("meta_info") or {}).get("cached_tokens")
    return count
    # end


lesson.check("cached", cached)

# %% [markdown]
# Now the picture. A line is what a server found of the growing prompt. A cross below the line at zero is an answer without a count.

# %%
points = {server: [(probe.prompt_tokens(a.answer), cached(a.answer)) for a in given] for server, given in growing.items()}
caption = "Written for this lesson in the published formats; counted by our own engine. Server three never says what it found."
chart(staircase(points), caption)

# %% [markdown]
# ## What happened
#
# Server *two* counts in steps: what does not fill a block is computed again. Server *one* finds everything but the last token. Its very first answer had no count, and then counts came: it leaves zeros out, as SGLang does. You know
# that only because you saw other answers of the same server. Server *three* says nothing at all, and it may be finding everything.
#
# ## Exercise 2: the granularity from the steps
#
# `points` is a list of pairs, prompt tokens and count (or `None`), of a prompt that grew by one token at a time. Look at known counts only. A step is the difference between a count and the last known one before it,
# where it is above zero; the first known count takes its step from zero. All steps are multiples of the granularity, so it is their greatest common divisor, which `math.gcd(a, b, ...)` gives. Without any step return `None`.

# %%
def granularity(points):
    """In how many tokens at a time the server shares prompts; None if the points do not show it."""
    # stub: raise Unfinished("known = [count for _, count in points if count is not None]; then the differences of neighbours in [0, *known] that are above zero; math.gcd(*steps) gives zero for no steps, and zero is not an answer")
    # solution:
    known = [count for _, count in points if count is not None]
    steps = [after - before for before, after in zip([0, *known], known, strict=False) if after > before]
    return math.gcd(*steps) or None
    # end


lesson.check("granularity", granularity)

# %%
rows = []
for server, given in points.items():
    hits = [(tokens, count) for tokens, count in given if count]
    unknown = sum(count is None for _, count in given)
    rows.append([server, len(given), unknown, granularity(given), hits[0][0] if hits else None])
table("What the answers tell", ["server", "answers", "without a count", "granularity, tokens", "shortest prompt with a hit"], rows)

# %% [markdown]
# ## Your own server
#
# If you run an OpenAI-compatible server (SGLang, vLLM or another), write its address into the next cell, or set `RADIX_PROBE_URL` before you start Jupyter. The probe sends a few dozen short prompts of common words, and asks for one token
# each. The words are drawn anew each time: a server still knows what the last probe sent.

# %%
url = os.environ.get("RADIX_PROBE_URL", "")  # or the address itself, as "http://localhost:30000"
try:
    server = probe.connect(url)
    mine = [(probe.prompt_tokens(answer), cached(answer)) for answer in server.grow(56)]
    mine = [(tokens, count) for tokens, count in mine if tokens is not None]
    came_back = cached(server.again(words=64, fillers=4))
    told = "its answers do not show a granularity" if granularity(mine) is None else f"it shares prompts in {granularity(mine)} tokens"
    found = "unknown" if came_back is None else came_back
    caption = f"{server.model}: {told}. Tokens found of a prompt of 64 words after 4 others: {found}."
    shown = chart(staircase({server.model: mine}), caption)
except probe.ProbeError as error:
    shown = say(str(error))
shown

# %% [markdown]
# ## Three questions about your own run
#
# A server was drawn for you alone. A prompt grew on it from one token on, one at a time. Its counts are in `lesson.own.run`, as the events `request.matched`; `lesson.own.facts` says what was sent.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
found = [e.length for e in events(lesson.own.run, "request.matched")]
first = granularity(list(enumerate(found, 1)))
second = next(tokens for tokens, count in enumerate(found, 1) if count)
third = found.count(0)
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** tells the count with `--enable-cache-report`, and leaves the field out where it is zero. Its own `/generate` always has it in `meta_info.cached_tokens`. The granularity is `--page-size`, one token by default unless the
#   attention backend asks for another. The log line of each prefill shows `#new-token` and `#cached-token`, also without the flag.
# - **vLLM** tells it with `--enable-prompt-tokens-details`, zeros too; without the flag the field is `null` (and in early V1 versions with it, see vllm#16162). The granularity is `--block-size`. The metrics `vllm:prefix_cache_queries` and
#   `vllm:prefix_cache_hits` are there in any case: look at them before and after the probe.
# - Other traffic disturbs a probe. On a server that others use, repeat it, and believe what comes out twice.

# %%
lesson.finish()
