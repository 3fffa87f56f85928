# %%
from workbench.figures.tree import tree
from workbench.lessons import Lesson, Unfinished, chart, events, say, show
from workbench.replay import fold

lesson = Lesson("L2")
lesson

# %% [markdown]
# ## The idea
#
# For every token of a prompt a model computes a key and a value in each layer, its **KV**, which later tokens look back at. A server
# can keep them. When another prompt begins with the same tokens, it need not compute them again. But how does it find them, among thousands
# of prompts, without comparing with each?
#
# SGLang's answer (Zheng et al., 2024) is a **radix tree**. Each node holds a run of tokens and knows where their KV lies. A prompt is a path
# from the root. Prompts that begin alike share their path up to the token where they part, and there the tree forks.
#
# Three prompts will arrive, one after the other:
#
# | request | tokens |
# |---|---|
# | `R1` | `10 11 12 13 14 15 20 21` |
# | `R2` | `10 11 12 13 14 15 30 31` |
# | `R3` | `10 11 12 13 14 15 20 40` |
#
# Three rules. (1) The **last token** of a prompt is never looked up: it has to be computed in any case, because the first token of the
# answer comes out of it. (2) If a look-up ends in the middle of a node, that node is **split** there, at once. (3) When the answer is complete the rest of
# the prompt is stored, as a node below the place where the look-up ended. Each answer here is a single token; nothing of the answers is stored.
#
# Draw the tree on paper after each of the three prompts. Then think of another server that has no tree. It cuts every prompt into **blocks** of four tokens, and
# finds a block only as a whole, and only if all blocks before it were found (lesson 4).

# %% [markdown]
# ## Predict
#
# Put your numbers in place of `None`. They are kept as they are now, so that you can compare them with what happens. Nobody else sees them.
# Being wrong here is the point of the exercise; a guess made before you look is worth more than ten explanations after.

# %%
lesson.predict(
    # stub: second=None,  # tokens of R2 that the tree finds, 0 to 8
    # stub: third=None,  # tokens of R3 that the tree finds, 0 to 8
    # stub: splits=None,  # how many times a node is split, in all three requests together
    # stub: nodes=None,  # how many nodes the tree has at the end; the root does not count
    # stub: blocks=None,  # tokens of R3 that the other server finds, with its blocks of 4 tokens
    # solution:
    second=6,
    third=7,
    splits=2,
    nodes=5,
    blocks=4,
    # end
)

# %% [markdown]
# ## Run
#
# This is the real engine with its real tree and its real memory. Only the model is a puppet: it answers with made-up tokens and checks that
# whatever KV it is handed belongs to this very sequence. So the run takes no time, and a wrong look-up could not go unnoticed.

# %%
grow = lesson.run("grow", "second", "third", "splits", "nodes", "blocks")
blocks = lesson.run("blocks")
matched = {e.request: e for e in events(grow, "request.matched")}
split = events(grow, "node.split")
blocks_matched = {e.request: e for e in events(blocks, "request.matched")}
grow, blocks

# %% [markdown]
# ## Reveal
#
# Every decision of the engine is an event with a number. The card names the events that settle your predictions. `events(run, kind)` reads them
# from the run's trace; `fold` adds all of them up to the state that the engine is in.

# %%
lesson.reveal(
    grow,
    second=(matched["R2"].length, matched["R2"].seq),
    third=(matched["R3"].length, matched["R3"].seq),
    splits=(len(split), split[-1].seq),
    nodes=(len(fold(grow.trace.events).nodes), events(grow, "node.created")[-1].seq),
)

# %%
lesson.reveal(blocks, blocks=(blocks_matched["R3"].length, blocks_matched["R3"].seq))

# %% [markdown]
# And here is the tree after the third prompt, compared with what it was before. A node whose place or run has changed is marked as moved; its KV lies where it lay.

# %%
before = fold(grow.trace.events[: matched["R3"].seq])
after = fold(grow.trace.events)
drawn = tree(after, before, "The tree after the third prompt")
chart(drawn, "Each box: a node's number and its tokens. Further down: deeper in the sequence.")

# %% [markdown]
# The same run in the player. It stands at the moment of the last split: the third prompt has been looked up and is not stored yet. Click into the picture, then step
# back and forth with the arrow keys. Click a node or a request: the panel **Why** tells about it. Press `tree` for a drawing like the one above.

# %%
show(grow, split[-1].seq, node=split[-1].node)

# %% [markdown]
# ## What happened
#
# The second prompt agreed with the first in their common beginning and parted there, so the engine cut the first node in two. The front
# kept the shared tokens; both tails hang below it. The third prompt resembles the *first* one more than the second. Its look-up, without the last token, found
# everything it asked for and ended inside the first one's tail, so that tail was cut as well. Its last token then became a node of its own.
#
# A split moves no KV. Only the tree's own books change: which node lists which pages. And a look-up never compares with every stored prompt:
# at each node at most one child can begin with the next token, so one step down is all there is to decide.

# %%
total = sum(e.length for e in matched.values())
say(
    f"In this run {total} of {sum(r.prompt_tokens for r in grow.report.requests)} prompt tokens were found again with the tree, "
    f"and {sum(e.length for e in blocks_matched.values())} with blocks of {blocks.scenario.engine.page_size} tokens."
)

# %% [markdown]
# ## Exercise: write the look-up
#
# Now the engine takes *your* look-up. `root` and every node have `.tokens` (the run, a list) and `.children` (a dictionary from the first token
# of a child's run to that child). `tokens` is the prompt without its last token. Walk down as long as the tokens agree. Return two things: the node in which
# the last agreeing token lies, and how many tokens agree in all.
#
# An example: the tree holds only `R1`, as node `#1` with eight tokens, and `R2` is looked up. Its first six tokens agree with the beginning of node `#1`, the seventh does
# not. The answer is node `#1` and `6`, although the node is longer than that. If nothing agrees, return `root` and `0`.

# %%
def match_prefix(root, tokens):
    """The deepest node that `tokens` reach from `root`, and how many of the tokens are known."""
    # stub: raise Unfinished("start at the root with nothing known. Which child can go on, if any? How far does its run agree? What tells you to go deeper, and what to stop? Mind the end of the tokens")
    # solution:
    node, known = root, 0
    while known < len(tokens) and tokens[known] in node.children:
        node = node.children[tokens[known]]
        for token in node.tokens:
            if known == len(tokens) or tokens[known] != token:
                return node, known
            known += 1
    return node, known
    # end


lesson.check("match", match_prefix)

# %% [markdown]
# ## Three questions about your own run
#
# These prompts were drawn for you alone, and the engine has served them. Find the answers by hand, with the rules above, or read them off the trace of `lesson.own.run`:
# `events(lesson.own.run, "request.matched")`, `events(lesson.own.run, "node.split")`, and `fold` as in the cells before.

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
first = sum(e.length for e in events(lesson.own.run, "request.matched"))
second = len(events(lesson.own.run, "node.split"))
third = len(fold(lesson.own.run.trace.events).nodes)
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** keeps such a tree unless `--disable-radix-cache` is given. Its log line for each prefill shows `#new-token` (computed) and
#   `#cached-token` (found). `--page-size` sets how many tokens a **page** of memory holds; only whole pages are shared.
# - **vLLM** has no tree. It cuts prompts into blocks of `--block-size` tokens and finds each by a hash of its own tokens and the hash before it
#   (lesson 4). `--no-enable-prefix-caching` turns that off; the metrics `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` count tokens.
# - Asking for the count per request: with SGLang `--enable-cache-report`, with vLLM `--enable-prompt-tokens-details`; both answer
#   in `usage.prompt_tokens_details.cached_tokens`. A server that sends no such field has not told you zero. It has told you nothing.

# %%
lesson.finish()
