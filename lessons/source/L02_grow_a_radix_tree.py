# %%
from workbench.figures.tree import tree
from workbench.lessons import Lesson, Unfinished, chart, events, say, show
from workbench.replay import fold

lesson = Lesson("L2")
lesson

# %% [markdown]
# ## The idea
#
# A server that has computed the KV of one prompt can keep it. When another prompt begins with the same tokens, it need not compute
# them again. But how does it find them, among thousands of prompts, without comparing with each?
#
# SGLang's answer (Zheng et al., 2024) is a **radix tree**. Its edges carry runs of tokens. A sequence is a path from the root.
# Prompts that begin alike share their path up to the token where they part, and there the tree forks.
#
# Three prompts will arrive, one after the other:
#
# | request | tokens |
# |---|---|
# | `R1` | `10 11 12 13 14 15 20 21` |
# | `R2` | `10 11 12 13 14 15 30 31` |
# | `R3` | `10 11 12 13 14 15 20 40` |
#
# Each is stored when its answer is complete. A prompt that parts from a stored one in the middle of a node **splits** that node.
# Draw the tree on paper after each of the three. Then write down what you expect.

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
    # stub: blocks=None,  # tokens of R3 that are found if there are only blocks of 4 tokens, and no tree
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
# This is the real engine with its real tree, pool and scheduler. Only the model is a puppet: it answers with made-up tokens and checks that
# every page it is given holds what the sequence needs. So the run takes no time, and a wrong page could not go unnoticed.

# %%
grow = lesson.run("grow", "second", "third", "splits", "nodes", "blocks")
blocks = lesson.run("blocks")
matched = {e.request: e for e in events(grow, "request.matched")}
split = events(grow, "node.split")
blocks_matched = {e.request: e for e in events(blocks, "request.matched")}
[(name, e.length) for name, e in matched.items()]

# %% [markdown]
# ## Reveal
#
# Every decision of the engine is an event with a number. The card names the event that settles each of your predictions.

# %%
lesson.reveal(
    grow,
    second=(matched["R2"].length, matched["R2"].seq),
    third=(matched["R3"].length, matched["R3"].seq),
    splits=(len(split), split[-1].seq),
    nodes=len(fold(grow.trace.events).nodes),
)

# %%
lesson.reveal(blocks, blocks=(blocks_matched["R3"].length, blocks_matched["R3"].seq))

# %% [markdown]
# And here is the tree, before and after the third prompt. A node that kept its KV but hangs elsewhere now is marked as moved.

# %%
before = fold(grow.trace.events[: matched["R3"].seq])
after = fold(grow.trace.events)
drawn = tree(after, before, "The tree after the third prompt")
chart(drawn, "Each box: a node's number and its tokens. Further down: deeper in the sequence.")

# %% [markdown]
# The same in the player. It stands at the moment of the last split. Step back and forth with the arrow keys, click a node and ask why.

# %%
show(grow, split[-1].seq, node=split[-1].node)

# %% [markdown]
# ## What happened
#
# The second prompt agreed with the first in their common beginning and parted there, so the engine cut the first node in two. The front
# kept the shared tokens; both tails hang below it. The third prompt went one token further, because it resembles the *first* prompt more than
# the second. It parted inside the first one's tail, and that tail was cut as well.
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
# of a child's run to that child). Walk down as long as the tokens agree. Return the deepest node you reached and how many tokens are known.
#
# You may end in the middle of a node's run. If nothing agrees, return `root` and zero.

# %%
def match_prefix(root, tokens):
    """The deepest node that `tokens` reach from `root`, and how many of the tokens are known."""
    # stub: raise Unfinished("start with node, known = root, 0; while there is a child for tokens[known], step into it and count how far its run agrees; stop where it parts")
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
# These prompts were drawn for you alone. The engine has served them; `lesson.own.run` is the run and `lesson.own.facts` holds the prompts. Find the
# answers by hand, or read them off the trace.

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
#   `#cached-token` (found). `--page-size` sets how many tokens are shared at least.
# - **vLLM** has no tree. It cuts prompts into blocks of `--block-size` tokens and finds each by a hash of its own tokens and the hash before it
#   (lesson 4). `--no-enable-prefix-caching` turns that off; the metrics `vllm:prefix_cache_queries` and `vllm:prefix_cache_hits` count tokens.
# - Asking for the count per request: with SGLang `--enable-cache-report`, with vLLM `--enable-prompt-tokens-details`; both answer
#   in `usage.prompt_tokens_details.cached_tokens`. A server that sends no such field has not told you zero. It has told you nothing.

# %%
lesson.finish()
