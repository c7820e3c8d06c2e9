"""What both experiments share: evolve a module, search it at random as long, and print both."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planish.core import Candidate, Measured, Trial
from planish.core.front import growth_of
from planish.core.registry import level_named, load_program
from planish.store import Store, open_store
from planish.tuning.api import tune_program
from planish.tuning.comparison import Finalist
from planish.tuning.comparison_codec import medians
from planish.tuning.result import Result, read_result
from planish.tuning.settings import Budget, Settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"
OBJECTIVES = ("time_s", "error")
SHOWN = 10
"""Points of the curve of hypervolumes."""


@dataclass(frozen=True)
class Study:
    """Two searches of one module, with as many evaluations each.

    Args:
        evolved: by NSGA-II, with its front measured again at the end.
        trials: of NSGA-II.
        random: trials of random search.
    """

    evolved: Result
    trials: Sequence[Trial]
    random: Sequence[Trial]


def options(about: str | None, module: str) -> argparse.Namespace:
    """Read the command line."""
    given = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--module", default=str(EXAMPLES / module))
    given.add_argument("--data", default="", help="the folder of the data set; else PLANISH_DATA")
    given.add_argument("--seconds", type=float, default=3600, help="of the evolution, without its end")
    given.add_argument("--workers", type=int, default=0)
    given.add_argument("--population", type=int, default=0, help="0: the searcher's default")
    given.add_argument("--finalists", type=int, default=8, help="members of the front to measure again")
    given.add_argument("--seed", type=int, default=0)
    given.add_argument("--seeds", type=int, default=1, help="runs, each with the next seed")
    given.add_argument("--store", default="build/gevo_ml.db")
    given.add_argument("--no-random", action="store_true", help="leave random search out")
    return given.parse_args()


def studies(asked: argparse.Namespace) -> Iterator[Study]:
    """Run both searches by each seed; the same command goes on where it was stopped.

    Each seed has a store of its own: what another one measured would be taken from the store, with its noise.
    """
    path = Path(asked.store)
    for seed in range(asked.seed, asked.seed + asked.seeds):
        print(f"\n## Seed {seed}\n", flush=True)
        store = path.with_stem(f"{path.stem}-{Path(asked.module).stem}-{seed}")
        yield study(argparse.Namespace(**{**vars(asked), "seed": seed, "store": str(store)}))


def study(asked: argparse.Namespace) -> Study:
    """Run both searches; the same command goes on where it was stopped."""
    Path(asked.store).parent.mkdir(parents=True, exist_ok=True)
    more = {"population": asked.population} if asked.population else {}
    settings = Settings(
        objectives=OBJECTIVES,
        searcher="nsga2",
        searcher_options=more,
        seed=asked.seed,
        workers=asked.workers,
        finalists=asked.finalists,
    )
    named = {"data": asked.data} if asked.data else {}
    with open_store(asked.store) as store:
        level, program = load_program(asked.module, settings.level, named)
        evolved = _ended(store, settings) or tune_program(
            level, program, budget=Budget(seconds=asked.seconds), settings=settings, store=store
        )
        trials, others = _trials(store, evolved), list[Trial]()
        if not asked.no_random:
            plain = replace(settings, searcher="random", searcher_options={})
            budget = Budget(trials=len(trials))
            found = tune_program(level, program, budget=budget, settings=plain, store=store, compares=False)
            others = _trials(store, found)
    return Study(evolved, trials, others)


def _ended(store: Store, settings: Settings) -> Result | None:
    """Read the run that has ended and was compared, if there is one: a second time would search on."""
    ended = [run for run in store.runs() if run.status == "finished" and run.searcher == settings.searcher]
    found = read_result(store, ended[0].id) if ended else None
    return found if found is not None and found.comparison is not None else None


def _trials(store: Store, result: Result) -> list[Trial]:
    return list(store.run_trials(result.run.id, level_named("hlo").steps))


def show(found: Study) -> None:
    """Print the front as measured again, the edits, and the two searches side by side."""
    result = found.evolved
    compared = result.comparison
    assert compared is not None
    base = medians(compared.baseline)
    count, seconds = result.run.trials, sum(result.run.seconds.values())
    print(f"{count} evaluations by NSGA-II, {seconds:.0f} s in all, {_failed(found.trials)} failed\n")
    print("| module | time ms | x faster | error: search | validation | final | edits | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    if reference := compared.secondary_baseline:
        values = medians(reference)
        _row(reference.name, values, base["time_s"] / values["time_s"], {}, "", "")
    _row("baseline", base, 1.0, compared.baseline.scores, "0", "")
    for member in result.finalists:
        values = medians(member)
        edits = f"{len(member.candidate.steps)} of {member.n_steps_found}"
        verdict = ", ".join(f"{name} {member.measured[name].verdict}" for name in OBJECTIVES)
        _row(member.name, values, gain(member), member.scores, edits, verdict)
    print("\nEdits")
    for member in result.finalists:
        described = level_named("hlo").describe(result.task, member.candidate)
        print(f"\n{member.name}\n{described.get('edits', '')}")
    for note in result.notes:
        print(f"\nNote: {note}.")
    _searches(found)


def _row(
    name: str,
    values: Mapping[str, float],
    times: float,
    scores: Mapping[str, float],
    edits: str,
    verdict: str,
) -> None:
    time, ratio = f"{values['time_s'] * 1e3:.3f}", f"{times:.2f}"
    error = f"{values['error']:.2%}" if "error" in values else ""
    others = [f"{scores[key]:.2%}" if key in scores else "" for key in ("error_validation", "error_final")]
    print("|", " | ".join((name, time, ratio, error, *others, edits, verdict)), "|")


def gain(member: Finalist) -> float:
    """Give how many times faster than the baseline a member is, as measured alternately."""
    return member.measured["time_s"].gain.value


def best(
    result: Result, allowed: Callable[[Finalist], bool], key: Callable[[Finalist], float]
) -> Finalist | None:
    """Find the best member of the front that is allowed and that a second compiler agrees with."""
    found = [
        member for member in result.finalists if member.cross_check.agrees is not False and allowed(member)
    ]
    return min(found, key=key, default=None)


def spread(found: Mapping[str, Sequence[float]], form: str) -> None:
    """Print a table of the mean and the spread over the seeds.

    Args:
        found: name to a number for each seed that reached anything.
        form: of the numbers, such as ".2%".
    """
    print("\n| over the seeds | runs | mean | least | most |\n|---|---|---|---|---|")
    for name, numbers in found.items():
        columns = (statistics.fmean(numbers), min(numbers), max(numbers)) if numbers else ()
        print(f"| {name} | {len(numbers)} | {' | '.join(format(each, form) for each in columns)} |")


def _searches(found: Study) -> None:
    """Print the hypervolume of each search against its evaluations."""
    if not found.random:
        return
    objectives, total = found.evolved.task.objectives, len(found.trials)
    print("\nHypervolume, in units of the baseline's\n")
    print("| evaluations | NSGA-II | random |\n|---|---|---|")
    for count in sorted({max(1, total * part // SHOWN) for part in range(1, SHOWN + 1)}):
        grown = [
            growth_of(trials[:count], objectives, Candidate()) for trials in (found.trials, found.random)
        ]
        print(f"| {count} | {' | '.join(f'{growth.volume or 0:.3f}' for growth in grown)} |")
    for name, trials in (("NSGA-II", found.trials), ("random", found.random)):
        print(f"\n{name}'s front as the search measured it: time ms, error")
        for time, error in growth_of(trials, objectives, Candidate()).front:
            print(f"  {time * 1e3:9.3f}  {error:.2%}")


def _failed(trials: Sequence[Trial]) -> int:
    return sum(not isinstance(trial.outcome, Measured) for trial in trials)
