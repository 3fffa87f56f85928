# %%
from hashlib import sha256

from workbench import scenario as scenarios
from workbench.experiments.bench import outside_data
from workbench.experiments.hits import asked, rate
from workbench.experiments.result import Chart, Curve, Point
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Unfinished, chart, events, say, show, table
from workbench.runner import run as serve

lesson = Lesson("L4")
lesson

# %% [markdown]
# ## The idea
#
# Lesson 2 found prompts again with a tree. vLLM has no tree. It cuts every prompt into **blocks** of a fixed number of tokens and gives each
# full block a number, its **hash**. A table leads from the hash to the page with the block's KV. A look-up hashes the prompt's first block and asks the
# table, then the second, and stops at the first that is not there.
#
# What must go into the hash? Not the block's tokens alone. The KV of a token depends on all tokens before it, so the same four
# words after another beginning have other KV. Each hash therefore contains the hash before it. The hashes form a chain:
#
# `hash(block 3) = h(hash(block 2), tokens of block 3)` and so on, back to the first.
#
# This is simpler than a tree: no splits, no walk. The price is that a block is found whole or not at all. You will measure it.

# %%
chats = lesson.scenario("chats")
turns = [r for r in chats.requests if not r.id.endswith("+")]
say(
    f"The traffic: {len({r.id.split('-')[0] for r in turns})} chats, {len(turns)} questions. A prompt is the whole chat so far, "
    f"{sum(len(r.tokens) for r in turns) / len(turns):.0f} tokens on average (here a token is a word or a mark). "
    "Each answer is stored before the next question comes."
)

# %% [markdown]
# ## Predict
#
# The tree shares single tokens. Blocks round down to a multiple of their size. How many points of hit rate does that cost on these chats? A point is one
# percent of all prompt tokens. Your guess need only be near.
#
# Then three questions about the chain. A prompt of 32 tokens is stored in blocks of 4. It comes again with its tenth token changed; then with its two halves
# swapped. And at last a case from a real server: a model with blocks of `528` tokens (vllm#40696). Send the same prompt twice.

# %%
lesson.predict(
    # stub: lost16=None,  # points of hit rate lost with blocks of 16, such as 2.5
    # stub: lost64=None,  # and with blocks of 64
    # stub: changed=None,  # blocks, of 8, that are not found when the tenth token is another
    # stub: moved=None,  # tokens, of 32, that are found when the halves are swapped
    # stub: unseen=None,  # the longest prompt, in tokens, that finds nothing the second time with blocks of 528
    # solution:
    lost16=4.5,
    lost64=29.5,
    changed=6,
    moved=0,
    unseen=528,
    # end
)

# %% [markdown]
# ## Run
#
# The engine serves the chats six times: once with its tree, then with hashed blocks of five sizes. Memory is never short, so whatever is not found is lost to the block
# size alone. The model is a puppet that answers as recorded; no weights are needed.

# %%
SIZES = (1, 4, 16, 64, 512)
tree = lesson.run("chats", "lost16", "lost64", "changed", "moved", "unseen", cache="radix", page_size=1, pages=8192)
runs = {size: lesson.run("chats", page_size=size, pages=8192 // size) for size in SIZES}
rates = {size: rate(run.report) for size, run in runs.items()}
changed, edge = lesson.run("changed"), lesson.run("edge")
rows = [["radix tree", rate(tree.report)], *([f"blocks of {size}", found] for size, found in rates.items())]
table("Prompt tokens found again", ["cache", "%"], rows)

# %% [markdown]
# ## Reveal

# %%
# Exact shares, not those of the table, which are rounded.
prompt_tokens = sum(r.prompt_tokens for r in asked(tree.report))
exact = {size: 100 * sum(r.cached_tokens for r in asked(run.report)) / prompt_tokens for size, run in runs.items()}
lesson.reveal(lost16=exact[1] - exact[16], lost64=exact[1] - exact[64])

# %%
REFERENCE = {1: 92.9, 16: 90.3, 64: 82.9}  # measured elsewhere on public chats; see below
found = {"these chats": rates, "public chats, measured elsewhere": REFERENCE}
data = outside_data()  # the folder that $RADIX_DATA names, or None
if data and (data / "chat_replay").exists():
    public = {"kind": "chat", "file": str(data / "chat_replay"), "conversations": 100, "pick": "random", "min_turns": 3, "open": 32}
    public |= {"sequential": True, "answers": "stored", "text": "words"}
    engines = {size: {"cache": "blocks", "page_size": size, "pages": 400_000 // size} for size in SIZES}
    found["public chats of $RADIX_DATA, in words"] = {
        size: rate(serve(scenarios.parse({"engine": engine, "workload": public}, files=True)).report) for size, engine in engines.items()
    }
lines = [Curve(name=name, points=[Point(size, share) for size, share in of.items()]) for name, of in found.items()]
picture = draw(Chart(kind="capacity", title="", x="tokens a block", y="prompt tokens found again, %", curves=lines, log_x=True))
picture.update_xaxes(tickvals=SIZES).update_traces(cliponaxis=False)
chart(
    picture,
    "Further right: larger blocks, fewer entries to look after, less found. At 1 the blocks find what the tree finds.",
)

# %% [markdown]
# The reference points were measured elsewhere, on public chat data sets published as MTBench-101, MT-Eval and others: 400 chats, 32 open at a time, a token being four characters. Those chats are far longer
# than ours, so the same block costs less there. If `RADIX_DATA` names a folder with such data, the chart has a third line, your own.
#
# Now the chain: what the two changed prompts found, and the blocks of `528`.

# %%
second, third = events(changed, "request.matched")[1:]
new = events(changed, "node.created", request="R2")
lesson.reveal(changed, changed=(len(new), new[0].seq), moved=(third.length, third.seq))

# %%
again = [e for e in events(edge, "request.matched") if e.request in ("R2", "R4", "R6")]
length = {r.id: r.prompt_tokens for r in edge.report.requests}
lesson.reveal(edge, unseen=max((length[e.request], e.seq) for e in again if e.length == 0))

# %%
show(changed, second.seq, request="R2")

# %% [markdown]
# ## What happened
#
# **Rounding down.** If a prompt agrees with a stored one in its first *L* tokens, blocks of *B* find the largest multiple of *B* within *L*. The table below shows both numbers for
# some requests. So about half a block is lost, on average, for each prompt that is found at all. Where prompts are hardly longer than a block, that is nearly everything.
#
# **The chain.** One changed token leaves the blocks before it alone. Its own block gets another hash, and so do all later ones, since each hash contains the one before. The swapped halves
# were stored, token for token, and yet not found: at another place they are other KV.
#
# **The last token.** A prompt that just fills a block is stored in full. But an engine never looks up the last token, which it must compute to answer. So the second time no whole block is left to be found.
# The issue vllm#40696 reports it for prompts below the block size; a model with recurrent layers had forced that size.

# %%
agree = {e.request: e.length for e in events(tree, "request.matched")}
blocks = {e.request: e.length for e in events(runs[16], "request.matched")}
assert all(blocks[name] == length // 16 * 16 for name, length in agree.items())  # for every request of the run
rows = [[name, agree[name], blocks[name], agree[name] - blocks[name]] for name in ("C1-2", "C1-3", "C1-4", "C2-2", "C2-3")]
table("Tokens that the tree finds, and what blocks of 16 find of them", ["request", "tree", "blocks", "lost"], rows)

# %% [markdown]
# ## Exercise: the hash of a block, with a salt
#
# Two companies share one server. If both send the same text, the second gets its answer sooner, and so learns that somebody has sent it before. A **salt** prevents that: it goes
# into the hash, so that equal prompts of different tenants share nothing.
#
# Write the hash. `parent` is the hash of the block before, `0` for a prompt's first block. `tokens` is a list of ids. `salt` is `None` or a tuple of
# names that says whose prompt it is. Return an integer. Equal blocks after equal blocks of one tenant must get equal hashes, any others different ones.
#
# The engine runs with your hash. It also compares the tokens themselves before it hands out a page, so a poor hash cannot spoil an answer here. vLLM trusts its hash alone. The check therefore also
# counts what a cache that trusts *yours* would hand out.

# %%
def block_hash(parent, tokens, salt):
    """The hash of a block of `tokens` behind the block with hash `parent`, for the tenant that `salt` names."""
    # stub: raise Unfinished("put all three into one value, for example text = repr((parent, tokens, salt)), and make a number of it: int.from_bytes(sha256(text.encode()).digest()[:8], 'big')")
    # solution:
    text = repr((parent, tokens, salt))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    # end


lesson.check("hasher", block_hash)

# %% [markdown]
# ## Three questions about your own run
#
# Six prompts drawn for you, in blocks. `lesson.own.run` is the run, `lesson.own.facts` has the prompts and the block size. An event `request.matched` tells `length` (found, in whole blocks)
# and `raw_length` (how far the stored blocks agree with the prompt, token by token).

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
matched = events(lesson.own.run, "request.matched")
first = sum(e.length for e in matched)
second = sum(e.raw_length - e.length for e in matched)
third = len(events(lesson.own.run, "node.created"))
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **vLLM**: `--block-size` sets the tokens a block; some models force a size, and the log then says to what. A request field `cache_salt` keeps tenants apart. The metrics `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits`
#   count tokens.
# - **SGLang**: a radix tree with `--page-size`, one token unless the attention backend asks for more. With a larger page its tree rounds down just like blocks. `cache_salt` and `extra_key` keep requests apart. The log
#   line of a prefill shows `#cached-token`.
# - Both can publish which blocks they hold (`--kv-events-config`), each by a hash that is chained like yours. A router can then send a request to where its beginning lies.

# %%
lesson.finish()
