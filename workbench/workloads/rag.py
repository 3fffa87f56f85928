"""Retrieval: a question with the passages found for it, in the order in which they were found or in a fixed one.

A retriever puts the passage that answers first and others on the subject behind it, so two prompts with the
same passages rarely begin alike; a fixed (canonical) order lets them.
"""

from __future__ import annotations

from random import Random
from typing import Any, Literal

from pydantic import Field, model_validator

from workbench.workloads import lines, passages, texts
from workbench.workloads.arrivals import Timed, not_too_many
from workbench.workloads.runs import IDS, Range, check_ids, run, runs
from workbench.workloads.texts import SPELT, Spelt
from workbench.workloads.traffic import Maker, Traffic

INSTRUCTIONS = "Answer the question from the passages below. Say so if they do not hold the answer."
GENERATED = ("documents", "document", "system", "question", "subject")


class Rag(Timed):
    """Questions on passages; lengths in tokens."""

    kind: Literal["rag"]
    file: str | None = Field(None, min_length=1, description="passages with questions, a JSON object a line or SQuAD's layout; null: generated")
    requests: int | None = Field(None, ge=1, description="how many; null: every question of the file once")
    passages: int = Field(3, ge=1, le=100, description="passages in a prompt")
    order: Literal["retrieval", "canonical"] = Field("retrieval", description="as found, or each subject's always in the same order")
    question_first: bool = Field(False, description="the question before the passages, where nothing behind it can be shared")
    documents: int = Field(40, ge=1, description="passages in all (generated)")
    document: int = Field(256, ge=1, description="tokens of each (generated)")
    subject: int = Field(5, ge=1, description="passages about one subject, which are found together (generated)")
    question: int = Field(24, ge=1, description="tokens of a question (generated)")
    system: int = Field(64, ge=0, description="tokens of the instructions (generated)")
    zipf: float = Field(0.0, ge=0, le=10, allow_inf_nan=False, description="the k-th passage is asked for in proportion to 1/k^zipf (generated)")
    output: int = Field(16, ge=0, le=1_000_000, description="tokens to answer; 0: prefill only")
    ids: Range = Field(IDS, description="token ids are drawn from the first up to the second, itself left out (generated)")
    text: Spelt | None = SPELT

    @model_validator(mode="after")
    def _consistent(self) -> Rag:
        if self.file is not None:
            given = [key for key in (*GENERATED, "zipf") if key in self.model_fields_set]
            if given:
                raise ValueError(f"{given[0]}: the file says; leave it out, or leave file out")
            return self
        if self.requests is None:
            raise ValueError("requests: is missing; say how many to generate, or name a file")
        length = self.system + self.passages * self.document + self.question
        not_too_many("requests", self.requests, self.requests * length)
        check_ids(self.ids, max(self.requests, self.documents))
        return self

    def traffic(self, maker: Maker) -> Traffic:
        """The requests, the same for the same file and seed; another order moves the same passages."""
        rng = Random(maker.seed)
        return self._read(maker, rng) if self.file is not None else self._made(rng)

    def _found(self, target: int, subject: list[int], rng: Random) -> list[int]:
        """The passages of one prompt: the one that answers, then others on its subject as drawn."""
        others = [i for i in subject if i != target]
        found = [target, *rng.sample(others, min(self.passages - 1, len(others)))]
        return sorted(found) if self.order == "canonical" else found

    def _made(self, rng: Random) -> Traffic:
        assert self.requests is not None
        system = run(rng, self.system, self.ids)
        documents = runs(rng, self.documents, self.document, self.ids)
        questions = runs(rng, self.requests, self.question, self.ids)
        weights = [k**-self.zipf for k in range(1, self.documents + 1)]
        asked: list[dict[str, Any]] = []
        labels = []
        for question, target in zip(questions, rng.choices(range(self.documents), weights, k=self.requests), strict=True):
            start = target // self.subject * self.subject
            found = self._found(target, list(range(start, min(start + self.subject, self.documents))), rng)
            middle = [i for d in found for i in documents[d]]
            asked.append({"tokens": [*system, *question, *middle] if self.question_first else [*system, *middle, *question]})
            labels.append("passages " + " ".join(str(d + 1) for d in found))
        return Traffic(self._requests(asked, labels, rng))

    def _read(self, maker: Maker, rng: Random) -> Traffic:
        assert self.file is not None
        with lines.under():
            known, tally = passages.read(lines.find(self.file, maker))
        subjects: dict[str, list[int]] = {}
        for number, one in enumerate(known):
            subjects.setdefault(one.title, []).append(number)
        questions = [(number, question) for number, one in enumerate(known) for question in one.questions]
        rng.shuffle(questions)
        if self.requests is not None and self.requests > len(questions):
            raise ValueError(f"requests: {self.requests:,} are asked for; the file has {len(questions):,} questions")
        questions = questions[: self.requests]
        not_too_many("requests", len(questions))
        tokenizer, told = (None, []) if maker.executor == "model" else texts.tokenizer(maker, self.text)
        asked: list[dict[str, Any]] = []
        for target, question in questions:
            found = [known[i].text for i in self._found(target, subjects[known[target].title], rng)]
            middle = [question, *found] if self.question_first else [*found, question]
            messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": "\n\n".join(middle)}]
            asked.append({"messages": messages} if tokenizer is None else {"tokens": tokenizer.chat(messages)})
        labels = [" ".join(question.split())[:60] for _, question in questions]
        return Traffic(self._requests(asked, labels, rng), tally.told + told)

    def _requests(self, asked: list[dict[str, Any]], labels: list[str], rng: Random) -> list[dict[str, Any]]:
        names = [f"R{i}" for i in range(1, len(asked) + 1)]
        return [
            {"id": name, "label": label, **one, "max_new_tokens": self.output, **when}
            for name, label, one, when in zip(names, labels, asked, self.moments(names, rng), strict=True)
        ]
