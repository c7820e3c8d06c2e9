"""The command that makes a shipped policy, that of this machine's width of vectors: measure, learn speeds,
teach a network what actions lead to, and then, on other programs, too, what its own proposals are worth.

    python experiments/looptune/make_policy.py -o src/planish/models/policy-loops.safetensors
        [--network mlp] [--minutes 28] [--rounds 3] [--matmuls 600] [--others 400] [--epochs 20]
        [--improvements 2]
        [--more-minutes 30] [--more-matmuls 300] [--more-others 1500] [--more-improvements 3]
        [--folder build/looptune] [--from POLICY]

It has three parts: schedules of chance, and those that a cost model holds for good, are measured in rounds,
and teach the network; then, twice, what the network proposes for the same programs is measured, and teaches
it; then, thrice, what it proposes for more programs, most of which are none of the thesis'. An hour and a
half of one core in all; `--more-minutes 0` leaves the third part out.

Measurements are kept in the folder, a file for each round (`round-*.jsonl`, `proposals-*.jsonl`, those of the
third part in `more/`), and an interrupted round is taken up; so another `--network` learns from what was
measured for the first one. With `--from` a policy that there is takes the place of the first part. Of those
that come with planish, `loops` has learnt from one core of an Intel Xeon (model 207) with AVX-512, and
`loops-avx2` from one of an AMD EPYC (Zen 3).
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dataset import examples_of
from measuring import measure_round
from programs import training_programs
from proposals import dataset_of_proposals, measure_proposals
from speeds import Known, fitted, read_measured, rows_of

from planish.core import rng
from planish.levels.loops.lang.program import Program
from planish.models.networks import KINDS
from planish.models.policy_files import SavedPolicy, load_policy, write_policy
from planish.models.provenance import stated
from planish.train.imitation import Epoch, imitate

EPOCHS, RATE = 8, 5e-4
"""Of learning from proposals: few and gently, so that the rest is not forgotten."""
FEWEST = 20
"""Measurements of a program of which its examples are made: with fewer the best is not known."""


def known_in(folder: Path) -> Known:
    """Join the measurements of all rounds."""
    found: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for path in sorted(folder.glob("round-*.jsonl")):
        for number, ways in read_measured(path).items():
            for way, rate in ways.items():
                found[number][way] = max(rate, found[number].get(way, 0.0))
    return found


def first_policy(programs: Sequence[Program], asked: argparse.Namespace) -> SavedPolicy:
    """Measure in rounds, then teach what a cost model knows of all states."""
    model, end = None, time.monotonic() + 60 * asked.minutes
    for number in range(asked.rounds):
        left = measure_round(
            programs, known_in(asked.folder), model, asked.folder / f"round-{number}.jsonl", end
        )
        print(f"round {number}: {left} programs left", flush=True)
        model = fitted(*rows_of(programs, known_in(asked.folder)))
    assert model is not None, "there is one round at least"
    known = known_in(asked.folder)
    taught = {n: programs[n] for n, ways in known.items() if len(ways) >= FEWEST}
    if not taught:
        raise SystemExit(f"no program has {FEWEST} measurements: give more --minutes")
    dataset = examples_of(taught, model, known, rng(0))
    print(f"{len(dataset.left):,} states of {len(taught)} programs", flush=True)
    return imitate(dataset, "loops", "loops", kind=asked.network or "mlp", epochs=asked.epochs, on_epoch=show)


def improved(
    policy: SavedPolicy, programs: Sequence[Program], minutes: float, paths: Sequence[Path]
) -> SavedPolicy:
    """Measure what the policy proposes, and teach it that, once for each file of measurements."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        measure_proposals(programs, policy, path, time.monotonic() + 60 * minutes / len(paths))
        dataset = dataset_of_proposals(programs, policy, path)
        print(f"{len(dataset.left):,} states of {len(dataset.programs)} programs", flush=True)
        policy = imitate(dataset, "loops", "loops", epochs=EPOCHS, start=policy, rate=RATE, on_epoch=show)
    return policy


def started(asked: argparse.Namespace) -> SavedPolicy | None:
    """Read the policy that takes the place of the first part; None where there is none."""
    if asked.start is None:
        return None
    policy = load_policy(asked.start)
    if asked.network not in (None, policy.shape.kind):
        # It would go on with the network that it has, and nobody would know.
        raise SystemExit(f"{asked.start} has the network {policy.shape.kind}: leave out --network, or --from")
    return policy


def proposals(folder: Path, count: int) -> list[Path]:
    """Name the files of measured proposals."""
    return [folder / f"proposals-{number}.jsonl" for number in range(count)]


def show(epoch: Epoch) -> None:
    """Print how far the training is."""
    print(epoch, flush=True)


def main() -> None:
    """Make the policy, and improve it."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("-o", "--output", type=Path, required=True)
    given.add_argument("--minutes", type=float, default=28.0, help="of measuring, for each of two parts")
    given.add_argument("--rounds", type=int, default=3)
    given.add_argument("--matmuls", type=int, default=600)
    given.add_argument("--others", type=int, default=400)
    given.add_argument("--network", choices=KINDS, help="mlp; or what --from has")
    given.add_argument("--epochs", type=int, default=20)
    given.add_argument("--folder", type=Path, default=Path("build/looptune"))
    given.add_argument("--from", type=Path, dest="start", help="a policy's file, in place of the first part")
    given.add_argument("--improvements", type=int, default=2, help="rounds of measuring what it proposes")
    given.add_argument("--more-minutes", type=float, default=30.0, help="of the third part; 0: without it")
    given.add_argument("--more-matmuls", type=int, default=300)
    given.add_argument("--more-others", type=int, default=1500)
    given.add_argument("--more-improvements", type=int, default=3)
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    programs = list(training_programs(asked.matmuls, asked.others))
    policy = started(asked) or first_policy(programs, asked)
    policy = improved(policy, programs, asked.minutes, proposals(asked.folder, asked.improvements))
    if asked.more_minutes:
        # To judge what the third part brings, and for `--from`.
        write_policy(policy, asked.folder / "before-more.safetensors")
        programs = list(training_programs(asked.more_matmuls, asked.more_others))
        paths = proposals(asked.folder / "more", asked.more_improvements)
        policy = improved(policy, programs, asked.more_minutes, paths)
    conditions = stated({"element type": program.arithmetic} for program in programs)
    write_policy(replace(policy, conditions=conditions), asked.output)


if __name__ == "__main__":
    main()
