"""Reward by step of the environment, for each algorithm (thesis, figure 3.7).

    python experiments/looptune/rewards.py [--minutes 5] [--programs 40] [--algorithms dqn ppo impala appo]
        [--folder build/rewards] [-o figure.html]

Each algorithm is trained by `planish policy train` on the same matmuls of the thesis' part for training, with
one store: what one has measured the next ones know. It goes on where it was interrupted, so that another call
with more minutes adds to the first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from planish.levels.loops.workloads import thesis_split
from planish.train.reinforcement import ALGORITHMS, EvalRecord, read_records


def trained(
    algorithm: str, minutes: float, folder: Path, name: str, options: Mapping[str, str] | None = None
) -> Sequence[EvalRecord]:
    """Train by an algorithm, for so many minutes in all, and return what it reported.

    Args:
        algorithm: one of `ALGORITHMS`.
        minutes: in all, those of calls before included.
        folder: has the programs and the store.
        name: of the policy.
        options: of the command, without their dashes, to their values.
    """
    policy = folder / f"{name}.safetensors"
    command = ["policy", "train", "--level", "loops", "--algorithm", algorithm, "--hours", str(minutes / 60)]
    places = ["--programs", folder / "programs.txt", "--store", folder / "s.db", "-o", policy]
    more = [f"--{option}={value}" for option, value in (options or {}).items()]
    planish = Path(sys.executable).with_name("planish")
    subprocess.run([planish, *command, *map(str, places), *more], check=True)
    return read_records(policy.with_suffix(".training"))


def write_programs(folder: Path, count: int) -> None:
    """Write what is trained on: so many of the thesis' matmuls for training."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"C[m,n] += A[m,k] * B[k,n] | m={m},n={n},k={k}\n" for m, n, k in thesis_split()[0][:count]]
    (folder / "programs.txt").write_text("".join(lines))


def table(found: dict[str, Sequence[EvalRecord]]) -> str:
    """Write how far each came."""
    heads = ["algorithm", "steps", "a second", "reward at first", "at last", "best of held-back programs"]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'--:|' * 5}"]
    for algorithm, records in found.items():
        last, best = records[-1], max(record.held for record in records)
        cells = [f"{last.steps:,}", f"{last.steps / last.seconds:.0f}", f"{records[0].reward:.3f}"]
        cells += [f"{last.reward:.3f}", f"{best:.3f}"]
        lines.append(f"| {algorithm} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(found: dict[str, Sequence[EvalRecord]], path: Path) -> None:
    """Draw the mean reward of episodes by steps."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for algorithm, records in found.items():
        figure.add_scatter(
            x=[record.steps for record in records], y=[record.reward for record in records], name=algorithm
        )
    figure.update_layout(xaxis_title="steps of the environment", yaxis_title="reward, as a share of the peak")
    path.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")


def main() -> None:
    """Train by each, and print."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--minutes", type=float, default=5.0, help="for each algorithm")
    given.add_argument("--programs", type=int, default=40)
    given.add_argument("--algorithms", nargs="+", choices=[*ALGORITHMS], default=[*ALGORITHMS])
    given.add_argument("--folder", type=Path, default=Path("build/rewards"))
    given.add_argument("-o", "--output", type=Path)
    asked = given.parse_args()
    write_programs(asked.folder, asked.programs)
    found = {name: trained(name, asked.minutes, asked.folder, name) for name in asked.algorithms}
    print(table(found))
    if asked.output:
        draw(found, asked.output)


if __name__ == "__main__":
    main()
