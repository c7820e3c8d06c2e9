"""What kinds of edits gain on modules: the table by which searches of the level `hlo` order their patches.

    python experiments/first_answers/edit_gains.py measure [--networks 30] [--folder build/edit_gains]
    python experiments/first_answers/edit_gains.py measure --held-out
    python experiments/first_answers/edit_gains.py write     # src/planish/levels/hlo/edit_gains.json
    python experiments/first_answers/edit_gains.py judge [--held-out]

`measure` measures patches that the structure of each module suggests, beside the unchanged module, and goes
on where it was stopped; with `--held-out` those of the six networks of `modules.py` and of small examples.
`write` makes the table of the former. `judge` orders the patches of each by what the others gained (with
`--held-out` those of the latter by the table), and shows after how many trials the hypervolume has grown by
95 % of what all patches grow it, beside the order of the structure alone.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from modules import Made, modules
from run import write, write_pictures

from networks import networks
from planish.core import (
    Candidate,
    Measured,
    PlanishError,
    candidate_from_json,
    evaluate_in_order,
)
from planish.levels.hlo import edit_gains
from planish.levels.hlo.level import HloLevel
from planish.levels.hlo.space import PatchSpace
from planish.measure.executors import LocalExecutor
from planish.train.background import MeasuredPatches
from planish.tuning.api import task_of
from planish.tuning.settings import Settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "hlo"
SMALL = ("transformer", "lstm", "regression")
OUTPUT = Path(edit_gains.__file__).with_name("edit_gains.json")
EACH, MOST = 2, 24
"""Patches of the same kinds, and of one module, that are measured; of held-out modules all up to a limit."""
MOST_HELD_OUT = 40
Row = Mapping[str, Any]


def sources(folder: Path, count: int, *, held_out: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield names of modules, and what writes each; it returns the path."""

    def written(name: str, make: Callable[[], Made]) -> str:
        return str(write(make(), folder / name.replace(" ", "-").replace(",", "")))

    if not held_out:
        for name, make in networks(count):
            yield name, lambda name=name, make=make: written(name, make)
        return
    for name in SMALL:
        yield name, lambda name=name: str(EXAMPLES / f"{name}.mlir")
    # Those that are trained take the longest.
    for name, make in reversed([*modules().items()]):
        yield name, lambda name=name, make=make: written(name, make)


def measure(folder: Path, count: int, *, held_out: bool) -> None:
    """Measure patches of all modules that are not yet in the file of results."""
    path = results_at(folder, held_out=held_out)
    write_pictures(folder / "pictures")
    known = {row["name"] for row in read(path)}
    for name, source in sources(folder, count, held_out=held_out):
        if name in known:
            continue
        begun = time.monotonic()
        try:
            row = measured(
                source(), EACH if not held_out else MOST_HELD_OUT, MOST if not held_out else MOST_HELD_OUT
            )
        except PlanishError as error:
            print(name, "is left out:", error, flush=True)
            continue
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, **row}) + "\n")
        print(name, len(row["trials"]), f"patches; {time.monotonic() - begun:.0f} s", flush=True)


def measured(path: str, each: int, most: int) -> Row:
    """Measure patches of one module."""
    level = HloLevel()
    task = task_of(level, level.load(path, {}), Settings())
    space = level.space(task, "patches")
    assert isinstance(space, PatchSpace)
    spec = level.evaluator(task)
    seen, chosen = Counter[edit_gains.Kinds](), list[Candidate]()
    for patch in space.seeds():
        kinds = edit_gains.kinds_of(patch)
        seen[kinds] += 1
        if patch.steps and seen[kinds] <= each:
            chosen.append(patch)
    with LocalExecutor(spec, workers=1) as executor:
        (base,) = evaluate_in_order(executor, [Candidate()])
        if base is None or not isinstance(base.outcome, Measured):
            raise PlanishError(f"the unchanged module is not measured: {base}")
        spec.set_baseline(base.outcome)
        found = evaluate_in_order(executor, chosen[:most])
    names = [objective.name for objective in task.objectives]
    trials = [
        [
            [step.to_json() for step in one.candidate.steps],
            [one.outcome.values[name] for name in names] if isinstance(one.outcome, Measured) else None,
        ]
        for one in found
        if one
    ]
    return {
        "text": task.program.module.text,
        "objectives": names,
        "baseline": [base.outcome.values[name] for name in names],
        "trials": trials,
    }


def results_at(folder: Path, *, held_out: bool) -> Path:
    """Return the file of results."""
    return folder / ("held-out.jsonl" if held_out else "measured.jsonl")


def read(path: Path) -> list[dict[str, Any]]:
    """Read results; those that were cut off by an end are left out."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def candidate(steps: Sequence[Any]) -> Candidate:
    """Read a patch."""
    return candidate_from_json(steps, HloLevel().steps)


def patches_of(row: Row) -> MeasuredPatches:
    """Return what was measured of a module."""
    objectives = [HloLevel.objectives[name] for name in row["objectives"]]
    patches = {candidate(steps): values for steps, values in row["trials"]}
    return MeasuredPatches(row["text"], objectives, row["baseline"], patches)


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Make the table of what was measured."""
    found = [{"name": row["name"], **patches_of(row).row()} for row in rows]
    return {"about": "gains of kinds of edits; experiments/first_answers/edit_gains.py", "modules": found}


def judge(folder: Path, *, held_out: bool) -> tuple[float, float]:
    """Show how many trials orders of the same patches need, and return the means of the ratios.

    The table lacks the module that is judged by, or all networks of its family.
    """
    made = table(read(results_at(folder, held_out=False)))["modules"]
    print(
        "| module | patches | by structure | by other networks | by other families |\n|---|--:|--:|--:|--:|"
    )
    ratios = list[tuple[float, float]]()
    for row in read(results_at(folder, held_out=held_out)):
        of_row = patches_of(row)
        name, patches = row["name"], [*of_row.patches]
        lacking = (
            [module for module in made if module["name"] != name],
            [module for module in made if family(module["name"]) != family(name)],
        )
        known = map(edit_gains.gain_rows, lacking)
        orders = [patches, *(edit_gains.by_expected_gain(row["text"], patches, rows) for rows in known)]
        before, *after = (trials_to(of_row, order) for order in orders)
        ratios.append((after[0] / before, after[1] / before))
        print(f"| {name} | {len(patches)} | {before} | {after[0]} | {after[1]} |", flush=True)
    one, other = (math.exp(statistics.fmean(map(math.log, each))) for each in zip(*ratios, strict=True))
    print(f"\nGeometric means of the ratios: {one:.2f}, {other:.2f}")
    return one, other


def family(name: str) -> str:
    """Return the family of a network."""
    return name.rpartition("-")[0] or name


def trials_to(measured: MeasuredPatches, order: Sequence[Candidate], share: float = 0.95) -> int:
    """Return after how many patches the hypervolume has grown by a share of what all of them grow it."""
    growth = measured.growth(order)
    return next(index for index, value in enumerate(growth, 1) if value >= share * growth[-1])


def main() -> None:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("what", choices=("measure", "write", "judge"))
    given.add_argument("--networks", type=int, default=30)
    given.add_argument("--folder", type=Path, default=Path("build/edit_gains"))
    given.add_argument("--held-out", action="store_true")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.what == "measure":
        measure(asked.folder, asked.networks, held_out=asked.held_out)
    elif asked.what == "write":
        made = table(read(results_at(asked.folder, held_out=False)))
        alone, families = judge(asked.folder, held_out=False)
        made["judged"] = (
            f"{alone:.2f} times as many patches to 95 % of the hypervolume, each network left out in turn; "
            f"{families:.2f} with its family"
        )
        OUTPUT.write_text(json.dumps(made, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")
    else:
        judge(asked.folder, held_out=asked.held_out)


if __name__ == "__main__":
    main()
