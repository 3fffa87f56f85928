# %%
from itertools import pairwise

from workbench.experiments.overlap import lanes
from workbench.experiments.result import Chart
from workbench.figures.experiment import draw
from workbench.figures.stalls import stalls
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table

lesson = Lesson("L10")
lesson

# %% [markdown]
# ## The idea
#
# A serving engine works in steps. One step is one pass through the model, for many requests at once. A request whose prompt has to be computed brings many tokens into a step
# (**prefill**). A request whose answer is being written brings one token (**decode**).
#
# So a long prompt makes a long step, and every answer in it stands still meanwhile. That is a **stall**. The remedy is to compute the prompt in **chunks**, a part in each step. Agrawal et al. (2023, Sarathi) showed it;
# both SGLang and vLLM do it. Here the chunk size limits all tokens of a step. Each answer takes one of them, the prompt the rest.
#
# There is a second way to lose time. Before a step somebody must plan it: choose requests, find pages. If the device waits meanwhile, each step takes the plan *and* the pass. With **overlap**
# the next step is planned while this one runs.

# %% [markdown]
# ## Predict
#
# Four answers are being written when a prompt of `2,000` tokens arrives. A step takes `20` ms, and `1` ms for each of its tokens. These figures are the clock's: all times in this lesson are simulated.
#
# In the second part planning takes `2` ms and the pass `8` ms, whatever is in the step. One answer ends by itself.

# %%
lesson.predict(
    # stub: pause=None,  # chunk 512: the longest pause in an answer, in ms
    # stub: chunks=None,  # chunk 128: how many chunks
    # stub: later=None,  # chunk 32: times as long until the long prompt's first token, compared with uncut
    # stub: apart=None,  # chunk 128, but answers wait while any prompt is unfinished: longest pause "shorter" or "longer" than uncut
    # stub: step=None,  # a step with overlap, in ms
    # stub: wasted=None,  # tokens computed for an answer that has ended
    # solution:
    pause=532,
    chunks=17,
    later=1.84,
    apart="longer",
    step=8,
    wasted=1,
    # end
)

# %% [markdown]
# ## Run
#
# The same five requests with the prompt uncut and with four chunk sizes, in **mixed batches**: a step may hold a chunk and a token of each answer. Then once more with chunk `128`, not mixed: a step computes either prompts or answers, prompts first. The engine's scheduler is the
# real one; only the model is a puppet.

# %%
CHUNKS = (None, 2000, 512, 128, 32)
runs = {chunk: lesson.run("stall", "pause", "chunks", "later", "apart", chunk=chunk) for chunk in CHUNKS}
apart = lesson.run("stall", chunk=128, mixed=False)


def cut_by(run):
    """Tokens of the long prompt in each step that computes some of it."""
    planned = events(run, "step.planned")
    return [e.tokens[e.members.index("long")] for e in planned if "long" in e.members[: e.prefills]]


def waits(run, request="A1"):
    """Between two tokens of an answer: how many ms it took, and the event that ended it."""
    members = {e.step: e.members for e in events(run, "step.planned")}
    came = [e for e in events(run, "step.finished") if dict(zip(members[e.step], e.emitted, strict=True)).get(request)]
    return [(1000 * (b.t - a.t), b.seq) for a, b in pairwise(came)]


longest = {chunk: max(waits(run)) for chunk, run in runs.items()}
first_token = {chunk: 1000 * events(run, "request.first_token", request="long")[0].ttft for chunk, run in runs.items()}
rows = [
    [chunk or "uncut", len(cut_by(run)), sum(cut_by(run)), longest[chunk][0], first_token[chunk], 1000 * run.report.totals.duration]
    for chunk, run in runs.items()
]
columns = ["chunk", "chunks", "tokens in all", "longest pause, ms", "prompt's first token, ms", "whole run, ms"]
table("A prompt among four answers (simulated)", columns, rows)

# %% [markdown]
# ## Reveal

# %%
alone = max(waits(apart))
lesson.reveal(
    runs[512],
    pause=longest[512],
    chunks=len(cut_by(runs[128])),
    later=first_token[32] / first_token[None],
    apart="longer" if alone[0] > longest[None][0] else "shorter",
)

# %%
drawn = {"uncut": runs[None].trace, "chunk 512": runs[512].trace, "chunk 128": runs[128].trace, "128, not mixed": apart.trace}
chart(
    stalls(drawn, "long", "A1", until=3000),
    "Filled: the prompt's chunks, with their tokens. Hollow: from one token of answer A1 to the next, in ms (simulated). A long hollow bar is a stall.",
)

# %%
overlapped = lesson.run("overlap", "step", "wasted")
serial = lesson.run("overlap", overlap=False)
ends = [1000 * e.t for e in events(overlapped, "step.finished")]
late = [e for e in events(overlapped, "step.finished") if e.late]
lesson.reveal(overlapped, step=ends[2] - ends[1], wasted=(sum(len(e.late) for e in late), late[0].seq))

# %%
both = [*lanes(serial, "serial"), *lanes(overlapped, "overlapped")]
picture = draw(Chart(kind="spans", title="", x="ms since the start (simulated)", y="", curves=both))
picture.update_traces(insidetextfont_color="#1d2329")
chart(picture, "The number in a bar is the step. Overlapped, the plan of a step lies beside the pass before it.")

# %%
show(overlapped, late[0].seq)

# %% [markdown]
# ## What happened
#
# **Chunks** bound the pause: a step is never longer than its chunk. They cost steps, and each step has its fixed part, so the long prompt itself answers later. Nobody computed more: the chunks add up to the prompt, always.
#
# **A small surprise.** Chunk `2000` does not fit a prompt of as many tokens, because the four answers take their share first.
#
# **Not mixed**, chunks make it worse. The answers wait until the last chunk is done, and now there are more steps to wait for.
#
# The tiny-llm course published figures of a real model on an Apple machine: with chunks of 32, 128 and 512 tokens 105, 145 and 157 tokens a second in all, and pauses of 30, 47 and 76 ms (95th percentile). Small chunks: short pauses, less throughput.
#
# **Overlap** hides the shorter of plan and pass behind the longer. It pays with a step that was planned before the last tokens were known. So an answer that ended is computed once more, for nothing. The trace says `late`.
#
# Is a chunked answer the same? Each token sees the same tokens before it, so yes, up to the rounding of sums done in another order. Here the puppet compares every token's KV with what the sequence needs; the cell below compares the answers. A puppet has no
# logits, so this run says nothing about rounding.

# %%
answers = {chunk: [r.output_ids for r in run.report.requests] for chunk, run in runs.items()}
assert all(same == answers[None] for same in answers.values())
assert all(longest[a][0] >= longest[b][0] and first_token[a] <= first_token[b] for a, b in pairwise(CHUNKS))  # ever shorter pauses, ever later
paid, saved = first_token[32] - first_token[None], longest[None][0] - longest[32][0]
took = [1000 * run.report.totals.duration for run in (serial, overlapped)]
say(
    f"All {len(answers)} runs gave the same answers. From uncut to chunk 32 the longest pause fell by {saved:.0f} ms, and the prompt's "
    f"first token came {paid:.0f} ms later. With overlap the second run took {took[1]:.0f} ms instead of {took[0]:.0f}."
)

# %% [markdown]
# ## Exercise: cut a prompt
#
# Cut it as the engine does. A step has room for `chunk` tokens. Each of `answers` takes one, the prompt gets the rest. Memory comes in pages of `page` tokens: a chunk must end where a page ends, counted from the start of the prompt, unless
# the prompt itself ends there. If there is not even room for one page, the chunk goes to the end of the page all the same, or nothing would ever move.
#
# Return the list of chunks.

# %%
def cut(prompt, chunk, answers, page):
    """How many tokens of the prompt each step computes."""
    # stub: raise Unfinished("keep done = 0; while done < prompt, end = min(prompt, done + chunk - answers); if that is not the prompt's end, round end down to a multiple of page, but go at least to the next multiple above done")
    # solution:
    done, chunks = 0, []
    while done < prompt:
        end = done + chunk - answers
        if end < prompt:
            end = max(end // page * page, (done // page + 1) * page)
        end = min(prompt, end)
        chunks.append(end - done)
        done = end
    return chunks
    # end


lesson.check("cut", cut)

# %% [markdown]
# ## Exercise: the largest chunk
#
# Readers should never wait longer than `limit` milliseconds for the next token while `answers` are being written. A step takes `20` ms, and `1` ms for each of its tokens. Which chunk is the largest that keeps the limit? Large, because the prompt should not wait longer than it must.

# %%
def largest_chunk(limit, answers):
    """The largest chunk size, in tokens, with which no step takes longer than `limit` ms."""
    # stub: raise Unfinished("a full step takes 20 + 1 * chunk ms, for the chunk counts the answers' tokens as well; set this equal to limit")
    # solution:
    return limit - 20
    # end


lesson.check("budget", largest_chunk)

# %% [markdown]
# ## Three questions about your own run
#
# Another long prompt, among other answers. `lesson.own.run` is the run, `lesson.own.facts` the set-up.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
mine = lesson.own.run
first = len(cut_by(mine))
second = max(waits(mine))[0]
third = 1000 * events(mine, "request.first_token", request="long")[0].ttft
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** cuts prompts at `--chunked-prefill-size` (by default 2,048 to 16,384, by GPU memory, in its source of August 2026; `-1` turns it off). Its default is prefill first; `--enable-mixed-chunk` mixes. Overlap is on
#   unless `--disable-overlap-schedule`. Watch `sglang:inter_token_latency_seconds`; the log line of a prefill tells `#new-token` and `#pending-token`.
# - **vLLM** gives each step a token budget, `--max-num-batched-tokens`, and always mixes. Planning ahead is its `async_scheduling`. The pauses are in `vllm:inter_token_latency_seconds`.
# - Look at a high percentile of these latencies, not at their mean: a stall is rare and long.

# %%
lesson.finish()
