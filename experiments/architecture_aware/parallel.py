"""What CombineParallelConv2D and CombineParallelDense, two passes of the paper's table 4, do to networks.

    python experiments/architecture_aware/parallel.py --folder models

Each pass alone, both after what prepares models for them, and the class's list with them and without, beside
ONNX Runtime's defaults: medians by processor time, one thread, alternately. Answers are compared with the
unoptimized model's. "Joined" are the convolutions and products that are fewer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from planish.levels.graph.feeds import make_feeds
from planish.levels.graph.model_cache import Rewriter, model_cache_of
from planish.levels.graph.model_protos import node_counts
from planish.levels.graph.passes import Selection
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import SessionSettings, open_session
from planish.levels.graph.source import read_model
from planish.levels.graph.starting_lists import class_lists
from planish.levels.graph.verification import difference, tolerance

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

from models.export import Wish, write

MODELS = ("resnet18", "ssd-mobilenet", "yolo", "bert-4x256", "t5", "gnn")
BOTH = ("planish.combine_parallel_conv", "planish.combine_parallel_dense")
FIRST = "onnxscript.optimize"
JOINED = ("Conv", "MatMul", "Gemm")
ROUNDS, BLOCK_S = 25, 0.02


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--models", nargs="+", default=MODELS)
    asked = given.parse_args()
    print("| model | selection | joined | latency, ms | times as fast |\n|---|---|---|---|---|", flush=True)
    for name in asked.models:
        measured(write(Wish(name, "dynamo-raw"), asked.folder))


def selections(program: GraphProgram) -> Mapping[str, Selection]:
    """Give what is compared."""
    found = {"the defaults": Selection(), FIRST: Selection((FIRST,))}
    found |= {f"{FIRST}, {name}": Selection((FIRST, name)) for name in BOTH}
    for chosen in class_lists(program)[:1]:
        kept = tuple(name for name in chosen.rewrites if name not in BOTH)
        found["the class's list without them"] = replace(chosen, rewrites=kept)
        found["the class's list and both"] = replace(chosen, rewrites=(*kept, *BOTH))
    return found


def measured(path: Path) -> None:
    """Measure a model, and print its rows."""
    program, settings = read_model(path, {}), SessionSettings()
    with tempfile.TemporaryDirectory() as folder:
        rewriter = Rewriter(program, model_cache_of(program), Path(folder))
        feed = make_feeds(program, rewriter.original)[0]
        expected = open_session(program.file, settings, as_it_is=True).run(feed)
        chosen = selections(program)
        sessions = {
            n: open_session(rewriter.rewritten(s.rewrites).file, settings, s.disabled)
            for n, s in chosen.items()
        }
        for name, session in sessions.items():
            wrong = difference(session.run(feed), expected, tolerance(()))
            assert not wrong, f"{path.stem}: {name}: {wrong}"
        counts = {name: _heavy(rewriter, each) for name, each in chosen.items()}
        spent: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(ROUNDS):
            for name, session in sessions.items():
                spent[name].append(_block(session.bound(feed)))
    medians = {name: statistics.median(each) for name, each in spent.items()}
    for name, seconds in medians.items():
        apart = tuple(each for each in chosen[name].rewrites if each not in BOTH)
        before = _heavy_of(counts, chosen, apart)
        print(
            f"| {path.stem} | {name} | {before - counts[name]} | {1e3 * seconds:.3f} |"
            f" {medians['the defaults'] / seconds:.2f} |",
            flush=True,
        )


def _heavy(rewriter: Rewriter, chosen: Selection) -> int:
    found = node_counts(rewriter.model(chosen.rewrites))
    return sum(found.get(name, 0) for name in JOINED)


def _heavy_of(counts: Mapping[str, int], chosen: Mapping[str, Selection], rewrites: tuple[str, ...]) -> int:
    return next(counts[name] for name, each in chosen.items() if each.rewrites == rewrites)


def _block(run: object) -> float:
    assert callable(run)
    calls, start = 0, time.process_time()
    while not calls or time.process_time() - start < BLOCK_S:
        run()
        calls += 1
    return (time.process_time() - start) / calls


if __name__ == "__main__":
    main()
