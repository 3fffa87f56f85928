"""Byte strings as a tree of bytes, laid out for walking level by level with arrays.

Nodes are numbered level by level, those of one parent side by side, so that the children of many nodes are
gathered at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Trie:
    """A tree over `strings`, none of them empty. Node 0 is the root."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        order = sorted(range(len(strings)), key=strings.__getitem__)
        lengths = np.array([len(strings[i]) for i in order], np.int64)
        text = np.frombuffer(b"".join(strings[i] for i in order), np.uint8)
        begins = np.cumsum(lengths) - lengths
        at = np.zeros(len(order), np.int64)
        parents, letters, size = [np.zeros(1, np.int64)], [np.zeros(1, np.uint8)], 1
        for depth in range(int(lengths.max(initial=0))):
            here = np.flatnonzero(lengths > depth)
            parent, letter = at[here], text[begins[here] + depth]
            # Sorted strings: those that share a node stand side by side.
            opens = np.ones(len(here), bool)
            opens[1:] = (parent[1:] != parent[:-1]) | (letter[1:] != letter[:-1])
            at[here] = size + np.cumsum(opens) - 1
            parents.append(parent[opens])
            letters.append(letter[opens])
            size += int(opens.sum())
        self.letters = np.concatenate(letters)
        """The byte that leads to each node, uint8 [nodes]; the root's says nothing."""
        self.nodes = np.zeros(len(order), np.int64)
        """The node at which each string ends, int64 [strings]."""
        self.nodes[order] = at
        self.parents = np.concatenate(parents)
        """int64 [nodes]; the root is its own."""
        self.levels = np.cumsum([0, *map(len, parents)]).tolist()
        """Where each level's nodes begin, and how many there are in all."""
        children = np.bincount(self.parents[1:], minlength=size)
        self._begins = np.concatenate([[1], 1 + np.cumsum(children)])

    def __len__(self) -> int:
        return len(self.letters)

    def children(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The children of several nodes, and how many each has."""
        first = self._begins[nodes]
        counts = self._begins[nodes + 1] - first
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        return np.repeat(first - (ends - counts), counts) + np.arange(total), counts
