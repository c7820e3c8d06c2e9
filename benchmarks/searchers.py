"""Compare the searchers on a recorded table: best found / optimum by number of trials, median over seeds.

Run `python benchmarks/searchers.py` for the synthetic lattice, or give the path of a recording that
`planish.core.recording.save_recording` wrote; its space is then made by the level that its task names.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planish.core import Objective, Space, Target, Task, evaluate, registry
from planish.core.recording import Recording, load_recording
from planish.search import fitting_searchers, make_searcher
from planish.testing.recorded import ReplayExecutor
from planish.testing.searchers import best_so_far, drive
from planish.testing.synthetic import Lattice

CHECKPOINTS = (10, 25, 50, 100, 200, 400, 800, 1600)
BEAMS = [{"width": 2}, {"width": 4}, {"width": 4, "depth": 30}]
VARIANTS = {"beam-dfs": BEAMS, "beam-bfs": BEAMS}


@dataclass(frozen=True)
class Scene:
    """A space with its recorded table."""

    title: str
    space: Space
    recording: Recording


def synthetic() -> Scene:
    """Make the default: 6,144 candidates, a ridge two steps wide, and times that are up to 30 % rugged."""
    lattice = Lattice((12, 8, 8, 8), ridge=2, ruggedness=0.3)
    recording = Recording("synthetic lattice", "lattice", lattice.objective, lattice.table())
    return Scene(f"synthetic lattice {lattice.sizes}", lattice, recording)


def recorded(path: Path) -> Scene:
    """Read a recording, and make its space anew."""
    recording = load_recording(path)
    said = json.loads(recording.task)
    level = registry.load("planish.levels", said["level"])()
    target = json.loads(said["target"])
    where = Target(target["processor"], frozenset(target["features"]), target["cores"], target["toolchain"])
    task = Task(
        level.read(said["program"], where),
        where,
        tuple(Objective(*fields) for fields in said["objectives"]),
        said["level_version"],
    )
    return Scene(f"{path.name}: {said['program']}", level.space(task, recording.space), recording)


def ratios(scene: Scene, name: str, options: dict[str, int], seed: int, trials: int) -> list[float]:
    """Run one searcher; gives best found / optimum after each trial, infinite while all have failed."""
    recording = scene.recording
    executor = ReplayExecutor(recording.outcomes, recording.seconds)
    searcher = make_searcher(name, scene.space, [recording.objective], seed, options)
    run = drive(searcher, lambda candidate: next(evaluate(executor, [candidate])).outcome, trials)
    optimum = recording.best()
    sign = 1 if optimum > 0 else -1
    best = best_so_far(run, recording.objective)
    return [float("inf") if cost is None else (cost / optimum) ** sign for cost in best]


def row(scene: Scene, name: str, options: dict[str, int], seeds: int, points: Sequence[int]) -> str:
    """Write one searcher's line of the table."""
    began = time.perf_counter()
    runs = [ratios(scene, name, options, seed, points[-1]) for seed in range(seeds)]
    each = (time.perf_counter() - began) / max(1, sum(map(len, runs)))
    medians = [statistics.median(run[min(point, len(run)) - 1] for run in runs) for point in points]
    label = name + "".join(f" {key}={value}" for key, value in options.items())
    cells = "".join(f"{median:8.3f}" for median in medians)
    found = sum(run[-1] <= 1 for run in runs)
    asked = statistics.median(map(len, runs))
    return f"{label:28}{cells}{found:6d}/{seeds}{asked:8.0f}{each * 1e6:10.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", nargs="?", type=Path, help="a *.jsonl.gz file; default: synthetic")
    parser.add_argument("--seeds", type=int, default=9, help="runs of each searcher")
    parser.add_argument("--trials", type=int, default=CHECKPOINTS[-1], help="trials of each run")
    arguments = parser.parse_args()
    scene = recorded(arguments.recording) if arguments.recording else synthetic()
    points = [*(point for point in CHECKPOINTS if point < arguments.trials), arguments.trials]
    failed = sum(not hasattr(outcome, "values") for outcome in scene.recording.outcomes.values())
    print(f"{scene.title}: {len(scene.recording.outcomes)} candidates recorded, {failed} of them failed")
    print(f"best found / optimum after n trials, median of {arguments.seeds} seeds")
    head = "".join(f"{point:8d}" for point in points)
    print(f"{'searcher':28}{head}{'found':>8}{'trials':>8}{'us/trial':>10}")
    for name in fitting_searchers(scene.space):
        for options in VARIANTS.get(name, [{}]):
            print(row(scene, name, options, arguments.seeds, points))


if __name__ == "__main__":
    main()
