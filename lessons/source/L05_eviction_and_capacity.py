# %%
from IPython.display import display

from engine import Plugs
from workbench.experiments import mooncake
from workbench.experiments.bench import Bench, outside_data
from workbench.experiments.result import Chart, Curve, Point
from workbench.figures.experiment import draw
from workbench.lessons import Lesson, Published, Unfinished, chart, events, say, show, table
from workbench.lessons.checks.l5 import AROUND, ORDINARY, UNEVEN, books, found, visits
from workbench.workloads.ceiling import best_possible

lesson = Lesson("L5")
lesson

# %% [markdown]
# ## The idea
#
# A server stores the KV of what it has computed, in **pages** of memory, hoping that somebody asks for it again. Memory is finite. When a new
# request needs pages and none is free, something stored has to go: an **eviction**. The usual rule is **LRU**: whatever was used longest ago goes first.
#
# Picture four handbooks, `A` to `D`. Each request asks one question about one handbook: `32` tokens of handbook, then `4` of question. A page holds `32` tokens, so a handbook
# is one page. Only full pages are kept; the question does not fill one and is forgotten. The memory has three pages: **room for two handbooks**, and a page for the
# question at hand. Requests come one after the other.
#
# Three things to think about:
#
# 1. Does the *order* of the same eight requests matter? Take `A B C D A B C D`, `A A B B C C D D`, and `A B A C A D A B`.
# 2. Another set-up: pages of `4` tokens. One handbook is eight pages, and a question fills a page, so now questions *are* kept. A first question about the handbook comes, then a second one; each
#    use gives a new date to the pages used. Then a visitor with another prompt needs two pages more than are free. One way dates *every page by itself*: the oldest goes, and of pages
#    with the same date the front one. The other way takes **leaves first**: the oldest of the pages on which no other builds. How much of the handbook does a third question find?
# 3. A handbook may be *in use*: its request is still being answered. Then what holds it carries a **lock**. Say `A` is being answered, `B` came later and has ended, and now `C` needs room.

# %% [markdown]
# ## Predict
#
# Play the orders with paper: two seats, and whoever was used longest ago leaves. The last two questions are about a published result; guess.

# %%
lesson.predict(
    # stub: cyclic=None,  # A B C D A B C D: how many of the 8 requests find their handbook
    # stub: grouped=None,  # A A B B C C D D: how many of the 8
    # stub: mixed=None,  # A B A C A D A B: how many of the 8
    # stub: cliff=None,  # room for how many handbooks until A B C D A B C D finds any at all, 1 to 8
    # stub: naive=None,  # each page by its own date: how many of the handbook's 32 tokens the third question finds
    # stub: tree=None,  # leaves first: how many of the 32 tokens it finds
    # stub: locked=None,  # A is being answered, B has ended, C needs room; which one is evicted: "A", "B" or "neither"
    # stub: three=None,  # a real service, room for 3 million tokens: "under half", "about three quarters" or "nearly all" of the best possible
    # stub: fifty=None,  # the same, room for 50 million tokens
    # solution:
    cyclic=0,
    grouped=4,
    mixed=3,
    cliff=4,
    naive=0,
    tree=32,
    locked="B",
    three="under half",
    fifty="nearly all",
    # end
)

# %% [markdown]
# ## Run
#
# The engine's tree, pool and eviction are real. Only the model is a puppet: it says made-up tokens, and stops the run if it is ever given a wrong page.

# %%
orders = {name: lesson.run(name, "cyclic", "grouped", "mixed", "cliff") for name in ("cyclic", "grouped", "mixed")}
naive, tree = lesson.run("naive", "naive"), lesson.run("tree", "tree")
locked = lesson.run("locked", "locked")
table(
    "Found (1) or computed again (0), request by request", ["run", "order", "found"],
    [[name, lesson.card.runs[name].label, "".join("1" if hit else "0" for hit in found(run))] for name, run in orders.items()],
)  # fmt: skip

# %% [markdown]
# ## Reveal
#
# First the room: the same two orders with room for one handbook, for two, and so on. The dashed line is what a cache without a limit would find.

# %%
rooms = range(1, 7)
shares, curves = {}, []
for name in ("cyclic", "grouped"):
    shares[name] = [100 * lesson.run(name, pages=room + 1).report.totals.hit_rate for room in rooms]
    points = [Point(room, share, f"room for {room}") for room, share in zip(rooms, shares[name], strict=True)]
    curves.append(Curve(name=lesson.card.runs[name].label, points=points))
prompts = [request.tokens for request in orders["cyclic"].scenario.requests]
best = round(100 * best_possible(prompts, 32) / sum(map(len, prompts)), 1)
axes = {"x": "room in the pool, handbooks", "y": "prompt tokens found, %"}
figure = draw(Chart(kind="capacity", title="", curves=curves, ceiling=best, **axes)).update_yaxes(range=[-2, 60])
chart(figure, "The same eight requests in two orders; least recently used out first. A handbook's first visit and every question have to be computed in any case.")

# %%
cliff = next(room for room, y in zip(rooms, shares["cyclic"], strict=True) if y > 0)
third = {name: events(run, "request.matched", request="R4")[0] for name, run in (("naive", naive), ("tree", tree))}
gone = {node.node: node.request for node in events(locked, "node.created")}[events(locked, "node.evicted")[0].node]
shown = lesson.reveal(
    orders["cyclic"],
    cyclic=(sum(found(orders["cyclic"])), events(orders["cyclic"], "request.matched", request="R5")[0].seq),
    grouped=sum(found(orders["grouped"])),
    mixed=sum(found(orders["mixed"])),
    cliff=cliff,
)
display(shown)
display(lesson.reveal(naive, naive=(third["naive"].length, third["naive"].seq)))
display(lesson.reveal(tree, tree=(third["tree"].length, third["tree"].seq)))
lesson.reveal(locked, locked=(gone, events(locked, "node.evicted")[0].seq))

# %% [markdown]
# Here is the cyclic run in the player, at its first eviction. Its boxes show tokens: handbook `A` is `256 … 287`, `B` is `1280 … 1311`, and so on, a thousand further each; the requests
# carry their handbook's name. Click into it, step on with the arrow keys, and watch who goes and what the next request asks for.

# %%
show(orders["cyclic"], events(orders["cyclic"], "eviction")[0].seq)

# %% [markdown]
# ## What happened
#
# *Around a circle LRU is always wrong.* The handbook that was used longest ago is the very one that comes next. More room helps nothing until the whole
# circle fits, and then everything is found that can be: a cliff. What has to fit is the **working set**, what will be asked for again soon. In the grouped order that is one handbook.
#
# *A beginning is worth more than its end.* A look-up starts at the first token. With its first page gone, the rest of the handbook still fills memory and nobody can find it.
# So a prefix cache evicts leaves: questions go before the handbook that they hang on.
#
# *What is read stays.* `A` was the oldest, and locked. The engine did not even consider it.
#
# The audit below does not ask the engine. It goes through the trace and keeps its own books of pages and nodes, event by event. The last run in it is the one that dated every page by itself; its cross is meant to be there.

# %%
books(*orders.values(), tree, locked, naive)

# %% [markdown]
# ## A real service
#
# Mooncake serves the Kimi assistant, and its makers published traces and a paper (Qin et al., FAST 2025), whose section 5.3.1 says how far a cache with room for so many tokens comes.
#
# If `$RADIX_DATA` names a folder that holds the public traces, the next cell replays the whole conversation trace, which takes a minute or so, and measures it. Otherwise it replays a set of
# fourteen requests that comes with this project. That one shows the method and says nothing about the service; what the paper says is then told as the paper's.

# %%
trace = outside_data() and outside_data() / "mooncake" / "conversation_trace.jsonl"
whole = bool(trace) and trace.is_file()
service = mooncake.find(Bench(file=trace) if whole else Bench(quick=True))
reached = {int(point.x): point.y for point in service.charts[0].curves[0].points}
if whole:
    caption = "The whole conversation trace, and the paper's claim checked against it."
    three, fifty = ("under half" if reached[room] < 50 else "nearly all" if reached[room] >= 97 else "about three quarters" for room in (3_000_000, 50_000_000))
else:
    caption = "Fourteen requests that come with this project. The paper's claim is not measured here; below stands what it says."
    three, fifty = (Published(said, "Mooncake's paper") for said in ("under half", "nearly all"))
told = lesson.reveal(three=three, fifty=fifty)
display(chart(draw(service.charts[0]), caption))
told

# %% [markdown]
# ## Exercise: a rule for the circle, and its price
#
# The engine takes *your* rule. Your function gets a node that may be evicted and returns a number, or a tuple of numbers that are compared one after the other; **the smallest goes first**.
# LRU is `return node.last_used`. A node here is one handbook. It has `.last_used` (a counter that rises with every use), `.hits` (how often a later request has found it: `0` as long as
# nobody has come back for it) and `.id` (rises with every new node). On a tie the node that was made first goes first. The same node must get the same number each time, so no
# chance; and which handbook it is must not matter, only how it was used.
#
# It is tried on two traces, with room for two handbooks. `AROUND` is the circle; there you have to find more than LRU, which finds nothing. In `ORDINARY` each reader asks five questions about
# one handbook, and two readers are there at a time; there you may lose a little, but have to find at least `85 of 100` handbooks that LRU finds. Both are strings: look at them.
#
# A rule that counts on one trace's own habits is a trick. The cell below the exercise sets yours beside other rules, also on a third trace, where readers ask a different number of questions each.

# %%
def who_goes_first(node):
    """A key: of all nodes that may go, the one with the smallest goes first."""
    # stub: raise Unfinished("begin with `return node.last_used`, which is LRU, and see what the check says; then ask what .hits tells you about a handbook")
    # solution:
    if node.hits:
        return (1, node.last_used)  # somebody came back for it: keep it, and among such ones LRU
    return (0, -node.last_used)  # nobody has yet: the newest goes first, so that the older ones get their chance
    # end


lesson.check("policy", who_goes_first)

# %%
# Yours beside the engine's own rules: oldest use, oldest node, newest use, fewest hits. The last, `belady`, throws out what
# is needed farthest in the future. A replay knows the future, a server does not: it shows how much there was to win.
def count(order, plugs=None, **engine):
    return sum(found(lesson.run(visits(order, **engine), plugs=plugs)))


traces = (AROUND, ORDINARY, UNEVEN)
rows = [[rule, *(count(order, eviction=rule) for order in traces)] for rule in ("lru", "fifo", "mru", "lfu", "belady")]
rows.append(["yours", *(count(order, plugs=Plugs(eviction=who_goes_first)) for order in traces)])
columns = ["rule", *(f"{name}, of {len(order)}" for name, order in zip(("circle", "ordinary", "uneven"), traces, strict=True))]
display(table("Requests that find their handbook", columns, rows))
lru, newest, fewest, yours = rows[0], rows[2], rows[3], rows[-1]
say(
    f"Newest first (mru) finds {newest[1]} around the circle, and {newest[2]} where LRU finds {lru[2]}: a trick for one trace. Fewest hits (lfu) finds {fewest[2]} there: "
    f"old favourites whose readers have left stay for ever. LRU finds {lru[1]}, {lru[2]} and {lru[3]}, yours {yours[1]}, {yours[2]} and, on the trace that it was not made for, {yours[3]}. "
    "Where one of them finds less: which handbook went too early, and what did the rule not know? No rule is best on all traffic, which is why servers let you choose."
)

# %% [markdown]
# ## Three questions about your own run

# %%
lesson.questions()

# %%
# stub: first, second, third = None, None, None
# solution:
run = lesson.own.run
admitted = {e.request: e for e in events(run, "request.admitted")}
first = sum(e.cached >= 32 for e in admitted.values())
second = sum(e.computed for e in admitted.values())
asked, third = set(), None
for request in run.scenario.requests:
    handbook = request.tokens[0]
    if handbook in asked and not admitted[request.id].cached:
        third = request.id
        break
    asked.add(handbook)
# end
lesson.answer(first, second, third)

# %% [markdown]
# ## On a real server
#
# - **SGLang** evicts leaves, whole ones. `--radix-eviction-policy` takes `lru`, `lfu`, `slru` (whatever has two hits goes after all that has fewer) or `priority`;
#   `--mem-fraction-static` sets how much memory the pool gets. The metric `sglang:evicted_tokens_total` counts what went. The prefill log line shows `token usage`, in which stored KV that nobody reads counts as free.
# - **vLLM** keeps freed blocks in a queue, least recently used in front, and puts a request's last block before its first: leaves first, by another road. Compare
#   `vllm:prefix_cache_hits` with `vllm:prefix_cache_queries`.
# - On either: a hit rate that falls off a cliff when a few more users arrive is a working set that no longer fits.

# %%
lesson.finish()
