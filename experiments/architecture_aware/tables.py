"""Tables 5 and 6 and figures 2 and 3 of the paper, on our models, and what becomes of each of its claims.

    python experiments/architecture_aware/tables.py --folder models --results results.json
    python experiments/architecture_aware/tables.py --folder models --small --runs 100 --warm 10

BL is ONNX Runtime's default, AS-0 and AS-1 are the class's lists in two orders, PO-0 to PO-3 are random lists
of the same passes and of those that depend on the user, each in the fastest of a few orders. The paper has
100 runs to warm up and 1,000 that count, as here by default; what is three standard deviations from the
mean is left out, as there. Here all seven are measured alternately, in several fresh processes, so that what
the machine does meanwhile is shared. Compile time is the time to make a session: from the rewritten file,
and from a file that was optimized offline; the rewriting passes' own time is a column. Results are kept
model by model: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from claims import Measured, best_list, middle, relative, verdicts
from measuring import Effort, measure

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

from models.export import Wish, write

NAMES = ("BL", "AS-0", "AS-1", "PO-0", "PO-1", "PO-2", "PO-3")
MODELS = tuple(
    f"{name}:{exporter}"
    for name in ("resnet50", "mobilenetv2", "ssd-resnet50", "bert-4x256")
    for exporter in ("torchscript", "dynamo-raw")
)
Cell = Callable[[Measured, str], str]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--models", nargs="+", default=MODELS, metavar="NAME:EXPORTER")
    given.add_argument("--small", action="store_true")
    given.add_argument("--results", type=Path, help="a JSON file; what is in it is not measured again")
    given.add_argument("--plot", type=Path, help="an HTML file, with figures 2 and 3")
    for field in fields(Effort):
        given.add_argument(f"--{field.name}", type=int, default=field.default)
    asked = given.parse_args()
    effort = Effort(**{field.name: getattr(asked, field.name) for field in fields(Effort)})
    models = measured(asked, effort)
    show(models)
    if asked.plot:
        from plots import plot

        plot(models, NAMES, asked.plot)
        print(f"\nwrote {asked.plot}")


def measured(asked: argparse.Namespace, effort: Effort) -> list[Measured]:
    """Measure each model, or take what was measured of it with the same effort."""
    kept: dict[str, Measured] = {}
    if asked.results and asked.results.exists():
        kept = json.loads(asked.results.read_text(encoding="utf-8"))
    chosen: list[Measured] = []
    for word in asked.models:
        name, _, exporter = word.partition(":")
        path = write(Wish(name, exporter or "torchscript", small=asked.small), asked.folder)
        key = f"{path.stem} {effort}"
        if key not in kept:
            print(f"measuring {path.stem} ...", file=sys.stderr)
            kept[key] = measure(path, effort)
            if asked.results:
                asked.results.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        chosen.append(kept[key])
    return chosen


def show(models: Sequence[Measured]) -> None:
    effort = models[0]["effort"]
    print(f"{effort['runs']} runs in {effort['processes']} processes, {effort['warm']} to warm up in each\n")
    lists(models)
    figure("Figure 2a: throughput, items/s (change)", models, _throughput)
    figure("Figure 2b: latency, ms (change)", models, _latency)
    figure("Figure 3: compile time, ms to make a session (change)", models, _creation)
    figure(
        "Figure 3, optimized offline: ms to load what was kept (change to BL's sessions)", models, _offline
    )
    figure("Rewriting, ms, once, before figure 3's", models, _rewriting)
    resources(models)
    print("\nClaims\n")
    table(["class", "the paper", "model", "here", "verdict"], verdicts(models))


def lists(models: Sequence[Measured]) -> None:
    print("Table 5: selected passes and their order\n")
    rows: list[list[str]] = []
    for model in models:
        for name in NAMES:
            found = model["configurations"][name]
            runtime = f"ONNX Runtime without {len(found['disabled'])} of its passes"
            rows.append(
                [model["model"], name, ", ".join([*found["rewrites"], runtime]), found.get("failed", "")]
            )
    table(["model", "ID", "passes", "failed"], rows)


def figure(title: str, models: Sequence[Measured], cell: Cell) -> None:
    print(f"\n{title}\n")
    rows = [
        [model["model"], "+".join(model["classes"]), *(_cell(model, name, cell) for name in NAMES)]
        for model in models
    ]
    table(["model", "class", *NAMES], rows)


def _cell(model: Measured, name: str, cell: Cell) -> str:
    return "failed" if "failed" in model["configurations"][name] else cell(model, name)


def _latency(model: Measured, name: str) -> str:
    found = relative(model, name, "latency")
    value = middle(model["configurations"][name]["latency"]) * 1e3
    return f"{value:.3f} ({found.value - 1:+.1%})" if found and name != "BL" else f"{value:.3f}"


def _throughput(model: Measured, name: str) -> str:
    found = relative(model, name, "latency")
    value = model["batch"] / middle(model["configurations"][name]["latency"])
    return f"{value:.1f} ({1 / found.value - 1:+.1%})" if found and name != "BL" else f"{value:.1f}"


def _creation(model: Measured, name: str) -> str:
    found = relative(model, name, "creation", "creation")
    value = middle(model["configurations"][name]["creation"]) * 1e3
    return f"{value:.1f} ({found.value - 1:+.0%})" if found and name != "BL" else f"{value:.1f}"


def _offline(model: Measured, name: str) -> str:
    found = relative(model, name, "offline", "creation")
    return (
        f"{middle(model['configurations'][name]['offline']) * 1e3:.1f} ({found.value - 1:+.0%})"
        if found
        else ""
    )


def _rewriting(model: Measured, name: str) -> str:
    return f"{model['configurations'][name]['rewriting'] * 1e3:.0f}"


def resources(models: Sequence[Measured]) -> None:
    """Print table 6; of memory, power and temperature each the median and the maximum.

    Memory is the most that each of several fresh processes took beyond its own; the paper's was read from
    time to time. Power and temperature are read around each round of runs, in each process.
    """
    print("\nTable 6: memory (MiB), power (W), temperature (degrees Celsius): median and maximum\n")
    rows: list[list[str]] = []
    for model in models:
        for name in filter(None, ("BL", best_list(model))):
            found = model["configurations"][name]
            read = [reading for process in found.get("readings", ()) for reading in process]
            rows.append(
                [
                    *(model["model"], name if name == "BL" else f"AS best ({name})"),
                    *(_both(found.get(key, ())) for key in ("peaks", "offline_peaks")),
                    *(_both([each[key] for each in read if key in each]) for key in ("power", "temperature")),
                ]
            )
    table(["model", "passes", "memory", "memory, offline", "power", "temperature"], rows)


def _both(values: Sequence[float]) -> str:
    """Write the median and the maximum."""
    return f"{statistics.median(values):.1f}, {max(values):.1f}" if values else "not available here"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
