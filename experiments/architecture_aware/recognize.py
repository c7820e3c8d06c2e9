"""Which class each network is recognized as: those that the recognizer was made with, and others.

    python experiments/architecture_aware/recognize.py --folder models

The networks are small, with random weights, by both exporters, as they come and as ONNX Runtime leaves them.
"Held out" are our own of other depths and kinds; "relatives" are by the authors of `transformers`, where it
is installed. The paper knows classes by name; this tests that a graph is enough.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from planish.levels.graph.architecture import recognize

EXAMPLES = Path(__file__).parents[2] / "examples" / "graph"
sys.path.insert(0, str(EXAMPLES))

from models.catalogue import ALL, NETWORKS  # noqa: E402
from models.export import EXPORTERS, Exporter, Wish, export_network, write  # noqa: E402
from relatives import relatives  # noqa: E402


@dataclass(frozen=True)
class Case:
    """One file, where it comes from and what it is."""

    group: str
    name: str
    classes: tuple[str, ...]
    file: Path


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True)
    given.add_argument("--exporters", nargs="+", choices=EXPORTERS, default=["torchscript", "dynamo-raw"])
    asked = given.parse_args()
    found = [(case, form, seen) for case in cases(asked) for form, seen in forms(case)]
    show(found)


def cases(asked: argparse.Namespace) -> Iterator[Case]:
    for exporter in asked.exporters:
        for name, network in ALL.items():
            group = "made with" if name in NETWORKS else "held out"
            yield Case(group, name, network.classes, write(Wish(name, exporter, small=True), asked.folder))
        yield from _relatives(asked.folder, exporter)


def _relatives(folder: Path, exporter: Exporter) -> Iterator[Case]:
    for name, classes, make, example in relatives():
        path = folder / f"relative-{name}-{exporter}.onnx"
        try:
            if not path.exists():
                onnx.save(export_network(make(), (example,), exporter, ["given"]), path)
        except Exception as error:  # noqa: BLE001  exporters raise whatever they like
            why = " ".join(str(error).split())[:100]
            print(f"{name} by {exporter}: not exported: {type(error).__name__}: {why}", file=sys.stderr)
            continue
        yield Case("relatives", name, classes, path)


def forms(case: Case) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Recognize a file as it came, and as ONNX Runtime leaves it by default."""
    import onnxruntime

    yield "as it came", recognize(onnx.load(case.file)).classes
    fused = case.file.with_suffix(".fused")
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.optimized_model_filepath = str(fused)
    try:
        onnxruntime.InferenceSession(str(case.file), settings)
    except Exception as error:  # noqa: BLE001  a model that the runtime refuses is no failure of ours
        print(f"{case.file.name}: not run: {' '.join(str(error).split())[:100]}", file=sys.stderr)
        return
    yield "fused", recognize(onnx.load(fused)).classes
    fused.unlink()


def show(found: list[tuple[Case, str, tuple[str, ...]]]) -> None:
    right: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    table: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    for case, form, seen in found:
        expected = case.classes or ("other",)
        key = case.group, form
        total[key] += 1
        right[key] += set(seen) == set(expected)
        table["+".join(sorted(expected)), "+".join(sorted(seen))] += 1
        if set(seen) != set(expected):
            wrong.append(f"- {case.file.stem}, {form}: {' + '.join(seen)}, is {' + '.join(expected)}")
    print("| networks | form | files | all classes right |\n|---|---|---|---|")
    for (group, form), count in total.items():
        print(f"| {group} | {form} | {count} | {right[group, form]} |")
    rows, columns = (sorted({pair[side] for pair in table}) for side in (0, 1))
    print(f"\nIs, down; seen as, across:\n\n| | {' | '.join(columns)} |\n{'|---' * (len(columns) + 1)}|")
    for row in rows:
        print(f"| {row} | {' | '.join(str(table[row, column] or '') for column in columns)} |")
    print("\n" + ("\n".join(wrong) or "None is wrong."))


if __name__ == "__main__":
    main()
