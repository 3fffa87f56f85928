"""Explain: a sentence for each event and an answer to each "why", from State and trace alone."""

from workbench.explain.answer import Answer, ExplainError, Link, Parting, Table, TokenRow
from workbench.explain.explainer import Explainer
from workbench.explain.plain import plain
from workbench.explain.sentences import sentence
from workbench.explain.whole import RunExplainer

__all__ = ["Answer", "ExplainError", "Explainer", "Link", "Parting", "RunExplainer", "Table", "TokenRow", "plain", "sentence"]
