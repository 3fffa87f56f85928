"""Equal states become one: partition refinement, in which only what may have changed is looked at again.

States begin in two blocks, accepting and not. A state's signature is the blocks that it leads to; states of a
block whose signatures differ part. When a block parts, its largest share keeps the block's number, so only the
states that lead into the smaller shares have to be looked at again (Hopcroft's idea: each state changes its
number at most log2(states) times).

Signatures are compared by a hash of 64 bits. That two different ones meet is most unlikely; the finished
partition is compared in full all the same, and worked out anew with other factors if it does not hold.
"""

from __future__ import annotations

import numpy as np

from engine.grammar.joined import Fragment
from engine.grammar.order import entries, gather


def minimise(piece: Fragment) -> Fragment:
    """The same language with the fewest states. The start stays state 0."""
    for seed in range(10):
        block = blocks(piece.moves, piece.accepting.astype(np.int64), seed=seed)
        count = int(block.max()) + 1
        first = np.full(count, len(piece))
        np.minimum.at(first, block, np.arange(len(piece)))
        order = np.argsort(first)
        place = np.empty(count + 1, np.int32)
        place[order] = np.arange(count, dtype=np.int32)
        place[-1] = -1
        number = np.append(place[block], np.int32(-1))
        moves = number[piece.moves]
        kept = first[order]
        if np.array_equal(moves, moves[kept][number[:-1]]):
            return Fragment(moves[kept], piece.accepting[kept])
    raise RuntimeError("ten hashes in a row met")


def blocks(moves: np.ndarray, start: np.ndarray, rounds: int | None = None, seed: int = 0) -> np.ndarray:
    """The block of each state, int [states], numbered from 0, beginning with the blocks of `start`.

    States of a block cannot be told apart by any text; with `rounds`, by any text of so many bytes.
    """
    states, classes = moves.shape
    random = np.random.default_rng(seed)
    factors = random.integers(1, 2**63, classes, np.uint64) * np.uint64(2) + np.uint64(1)
    sources, begins = entries(moves)
    # A block's number is itself a random one in the hash; 0 stands for no way on.
    names = random.integers(1, 2**63, states + 3, np.uint64)
    names[-1] = 0
    _, block = np.unique(start, return_inverse=True)
    sizes = np.bincount(block, minlength=states + 2)
    count = int(block.max()) + 1
    name = np.append(names[block], np.uint64(0))
    dirty = np.arange(states)
    while len(dirty) and rounds != 0:
        rounds = None if rounds is None else rounds - 1
        with np.errstate(over="ignore"):
            signature = name[moves[dirty]] @ factors
        old = block[dirty]
        order = np.lexsort((signature, old))
        old, signature, ranked = old[order], signature[order], dirty[order]
        opens = np.ones(len(ranked), bool)
        opens[1:] = (old[1:] != old[:-1]) | (signature[1:] != signature[:-1])
        group = np.cumsum(opens) - 1
        group_size = np.bincount(group)
        group_block = old[opens]
        keeps = _keeps(group_block, group_size, sizes)
        fresh = np.where(keeps, group_block, count + np.cumsum(~keeps) - 1)
        count += int((~keeps).sum())
        np.subtract.at(sizes, group_block[~keeps], group_size[~keeps])
        sizes[fresh[~keeps]] = group_size[~keeps]
        moved = ~keeps[group]
        changed = ranked[moved]
        block[changed] = fresh[group[moved]]
        name[changed] = names[block[changed]]
        dirty = np.unique(gather(sources, begins, changed))
    return block


def _keeps(group_block: np.ndarray, group_size: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Which groups keep their block's number: the largest of each block that was looked at as a whole.

    Where part of a block was not looked at, nothing there has changed, and that part keeps the number.
    Groups come sorted by block.
    """
    opens = np.ones(len(group_block), bool)
    opens[1:] = group_block[1:] != group_block[:-1]
    run = np.cumsum(opens) - 1
    looked_at = np.bincount(run, weights=group_size).astype(np.int64)
    whole = looked_at == sizes[group_block[opens]]
    order = np.lexsort((-group_size, run))
    largest = np.zeros(len(group_block), bool)
    largest[order[np.append(True, run[order][1:] != run[order][:-1])]] = True
    kept: np.ndarray = largest & whole[run]
    return kept
