"""Why a request went to its replica: the router's rule, and what it knew of each replica then."""

from __future__ import annotations

from engine import events as ev
from workbench.explain.answer import Answer, Link, Table
from workbench.explain.moment import Moment
from workbench.explain.sentences.requests import transferred
from workbench.explain.words import count, number


def explain(moment: Moment, e: ev.RequestRouted, answer: Answer) -> None:
    """Put into an answer why a request went where it did, and what the others had to offer."""
    rule = _RULES.get(moment.config("router") or "", "")
    if rule and not e.transferred:
        answer.detail.append(rule.format(**_knobs(moment)))
    if e.matches:
        answer.detail.append("What a replica is believed to hold is what it was sent: the router does not see what was evicted there.")
    answer.table = table(e)


def told(e: ev.RequestRouted) -> str:
    """In one sentence, where a request went."""
    others = [load for replica, load in enumerate(e.loads) if replica != e.chosen]
    loads = f"; it had {count(e.loads[e.chosen], 'request')} then, the others {', '.join(map(number, others))}" if others and e.chosen < len(e.loads) else ""
    return f"It went to replica {e.chosen}: {e.reason}{loads}.{transferred(e)}"


def table(e: ev.RequestRouted) -> Table:
    """Each replica's load and, where the router believes to know, how much of the prompt it holds."""
    columns = ["replica", "load, requests", *(["believed to hold, tokens"] if e.matches else [])]
    replicas = range(max(len(e.loads), len(e.matches), e.chosen + 1))
    at = [e.loads, e.matches] if e.matches else [e.loads]
    return Table(
        title=f"Where {e.request} could have gone",
        columns=columns,
        rows=[[i, *(values[i] if i < len(values) else None for values in at)] for i in replicas],
        taken=[i == e.chosen for i in replicas],
        links=[Link("replica", i, f"replica {i}") for i in replicas],
    )


_RULES = {
    "cache-aware": (
        "The cache-aware router sends a request where most of its prompt was sent before, if that is more than {threshold} of it, "
        "and else where the fewest requests are; there it goes too when loads are more than {apart} apart and the highest is over {times} times the lowest."
    ),
    "round-robin": "The round-robin router takes the replicas in turn, whatever they hold.",
    "least-loaded": "The least-loaded router takes the replica with the fewest requests that have not ended.",
    "power-of-two": "The power-of-two router draws two replicas and takes the one with fewer requests.",
}


def _knobs(moment: Moment) -> dict[str, str]:
    apart, times = moment.config("router_balance") or (None, None)
    threshold = moment.config("router_threshold")
    unknown = "an unknown number"
    return {
        "threshold": "an unknown share" if threshold is None else f"{100 * threshold:.0f} %",
        "apart": unknown if apart is None else number(apart), "times": unknown if times is None else number(times),
    }  # fmt: skip
