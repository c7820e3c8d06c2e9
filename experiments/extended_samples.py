"""What a search saves in few evaluations that goes on from a policy's samples, past what the policy writes.

    python experiments/extended_samples.py [CORPUS] [--functions 2000] [--samples 30] [--package haproxy ...]

Functions are of packages that no list and no policy was made from, by default those of the sample. All ways
begin with the lists that the shipped policy finds most probable, by their product; a function that is too
long for it has the coreset's. Then they go on with more of these; or with joins of two of the best; or with
changes of the best. The table has what is saved over -Oz, which stands behind all and whose own evaluation is
not counted, in instructions of all functions, after so many lists of each, with 95 % intervals over packages
after the last.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path

import numpy as np

from first_lists import OBJECTIVE, never
from gate import interval
from planish.core import EMPTY_CONTEXT, Candidate, Measured, evaluate, rng
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import elements, load_coreset
from planish.levels.llvm.passes.pipeline import candidate_of
from planish.levels.llvm.passes.space import PassSpace, oz_of
from planish.sandbox.fork_pool import Watchdog, forked
from planish.search import Rounds
from planish.search.minimization import policy_proposals
from planish.search.rounds import Archive, changed, new_from
from planish.train.background import HELD_OUT
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.corpus.shards import Row
from planish.train.labeling.function_search import FunctionExecutor, observed_space

COUNTS = 1, 3, 5, 10, 20, 30
FEW = 6
"""Best lists that are joined, or changed."""
Samples = Sequence[Candidate]


def sampled(space: PassSpace, samples: Samples) -> Rounds:
    """Take the samples one after the other."""
    del space
    yield samples


def joined(first: int, space: PassSpace, samples: Samples) -> Rounds:
    """Take some samples, then two of the best one after the other, then the other samples."""
    archive = Archive(space, FEW)
    yield from archive.measure_new(samples[:first])
    while True:
        best = archive.best()
        pairs = (Candidate((*one.steps, *other.steps)) for one in best for other in best if one != other)
        new = (pair for pair in pairs if len(pair.steps) <= space.longest and archive.visited.add(pair))
        asked = [*islice(new, 1)]
        if not asked:
            break
        yield from archive.measure(asked)
    yield from archive.measure_new(samples)


def varied(first: int, space: PassSpace, samples: Samples) -> Rounds:
    """Take some samples, then change one of the best, each half as likely as the one before it."""
    archive = Archive(space, FEW)
    yield from archive.measure_new(samples[:first])
    for number in count():
        generator, best = rng(0, number), archive.best()
        if not best:
            return
        near = space.focused(best)
        parent = best[(int(generator.geometric(0.5)) - 1) % len(best)]
        child = changed(near, parent, int(generator.geometric(0.5)), generator)
        new = new_from(near, archive.visited, child, generator)
        if new is None:
            return
        yield from archive.measure([new])


WAYS: Mapping[str, Callable[[PassSpace, Samples], Rounds]] = {
    "the policy's samples": sampled,
    "3 samples, then joins": partial(joined, 3),
    "10 samples, then joins": partial(joined, 10),
    "3 samples, then changes": partial(varied, 3),
    "10 samples, then changes": partial(varied, 10),
}


@dataclass(frozen=True)
class Following:
    """Follows all ways on a function, within a child.

    Args:
        most: lists of each way.
    """

    most: int

    def __call__(self, row: Row, watchdog: Watchdog) -> tuple[int, list[list[int]]] | None:
        """Return what -Oz leaves, and for each way what its lists leave; None where -Oz fails."""
        bindings, every = open_bindings(), elements()
        oz = oz_of({*every})
        assert oz is not None
        space = observed_space(bindings, tuple(every.values()), (oz,), row.ir)
        samples = [*(policy_proposals(space, "auto", self.most, EMPTY_CONTEXT) or ())]
        samples = [*dict.fromkeys((*samples, *map(candidate_of, load_coreset())))]
        costs = dict[Candidate, int | None]()
        executor = FunctionExecutor(bindings, row.ir, [OBJECTIVE.name], never, watchdog)

        def cost(candidate: Candidate) -> int | None:
            if candidate not in costs:
                (answer,) = evaluate(executor, [candidate])
                outcome = answer.outcome
                values = outcome.values if isinstance(outcome, Measured) else {}
                costs[candidate] = int(values[OBJECTIVE.name]) if values else None
            return costs[candidate]

        with closing(executor):
            baseline = cost(candidate_of((oz,)))
            if baseline is None:
                return None
            found = [[*islice(traced(way(space, samples), cost), self.most)] for way in WAYS.values()]
        return baseline, [[baseline if each is None else each for each in way] for way in found]


def traced(rounds: Rounds, cost: Callable[[Candidate], int | None]) -> Iterator[int | None]:
    """Yield the costs of candidates in the order in which they are asked for."""
    asked = next(rounds, None)
    while asked is not None:
        costs = dict[str, float]()
        for candidate in asked:
            value = cost(candidate)
            if value is not None:
                costs[candidate.hash] = value
            yield value
        try:
            asked = rounds.send(costs)
        except StopIteration:
            return


def main() -> None:
    """Print the table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path, nargs="?", default=SAMPLE)
    given.add_argument("--package", nargs="+", default=HELD_OUT)
    given.add_argument("--functions", type=int, default=2000)
    given.add_argument("--samples", type=int, default=max(COUNTS))
    asked = given.parse_args()
    rows = [row for row in read_corpus(asked.corpus) if row.package in asked.package]
    rows = random.Random(0).sample(rows, min(asked.functions, len(rows)))
    answer = tuple[int, list[list[int]]] | None
    done = [each for each in forked(rows, Following(asked.samples), answer, 1, at_once=8) if each.answer]
    packages = np.array([each.item.package for each in done])
    baseline = np.array([each.answer[0] for each in done if each.answer])
    counts = [each for each in COUNTS if each <= asked.samples]
    print(f"{len(done):,} functions of {len(set(packages.tolist()))} packages\n")
    print(f"| saved over -Oz, by lists | {' | '.join(map(str, counts))} | 95 % interval |")
    print("|---" * (len(counts) + 2) + "|")
    for at, name in enumerate(WAYS):
        saved = np.zeros((len(done), len(counts)))
        for row, each in enumerate(done):
            assert each.answer
            costs = np.minimum.accumulate([baseline[row], *each.answer[1][at]])
            saved[row] = [baseline[row] - costs[min(number, len(costs) - 1)] for number in counts]
        cells = " | ".join(f"{share:.2%}" for share in saved.sum(axis=0) / baseline.sum())
        print(f"| {name} | {cells} | {interval(saved[:, -1], baseline, packages)} |", flush=True)


if __name__ == "__main__":
    main()
