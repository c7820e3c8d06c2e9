"""Latency and compile time by the processor's time, for machines that are busy with other work.

    python experiments/architecture_aware/processor_time.py --folder models

Beside the defaults (BL) stand the class's list (AS-0), and what is good for most models, each as it is and
optimized offline. All are measured alternately, in one process, with one thread; so the time that others take
does not count, but what they push out of the caches does. Answers are compared with the unoptimized model's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from planish.core import PlanishError
from planish.levels.graph.feeds import Feed, make_feeds
from planish.levels.graph.model_cache import Rewriter, model_cache_of
from planish.levels.graph.passes import Selection
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import ModelSession, SessionSettings, open_session
from planish.levels.graph.source import read_model
from planish.levels.graph.starting_lists import GOOD_LISTS, class_lists
from planish.levels.graph.verification import difference, tolerance

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

from models.export import Wish, write

MODELS = (
    *("ssd-resnet50:dynamo-raw", "mobilenetv2:dynamo-raw"),
    *("resnet50:torchscript", "bert-4x256:torchscript"),
)
CAPACITY = 16 << 30
"""Bytes of files: all are measured alternately, and none may go."""
Open = Callable[[], ModelSession]


@dataclass(frozen=True)
class Spent:
    """Seconds of a processor, by round.

    Args:
        creation: to make a session.
        latency: of a run.
    """

    creation: list[float]
    latency: list[float]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--models", nargs="+", default=MODELS, metavar="NAME:EXPORTER")
    given.add_argument("--rounds", type=int, default=7)
    asked = given.parse_args()
    print("| model | selection | latency, ms | change | session, ms | change |\n|---|---|---|---|---|---|")
    for word in asked.models:
        name, _, exporter = word.partition(":")
        path = write(Wish(name, exporter or "torchscript"), asked.folder)  # pyright: ignore[reportArgumentType]
        measured(path, asked.rounds)


def measured(path: Path, rounds: int) -> None:
    """Measure a model, and print its rows."""
    program = read_model(path, {})
    with tempfile.TemporaryDirectory() as folder:
        rewriter = Rewriter(program, model_cache_of(program), Path(folder), CAPACITY)
        feed = make_feeds(program, rewriter.original)[0]
        opens = _opens(program, rewriter, feed)
        spent = {name: Spent([], []) for name in opens}
        for _ in range(rounds):
            for name, make in opens.items():
                _measure(make, feed, spent[name])
    base = spent["BL"]
    for name, each in spent.items():
        cells = [_cell(each.latency, base.latency), _cell(each.creation, base.creation)]
        print(f"| {path.stem} | {name} | {' | '.join(cells)} |", flush=True)


def _opens(program: GraphProgram, rewriter: Rewriter, feed: Feed) -> Mapping[str, Open]:
    """Give what makes a session of each selection whose answers are right."""
    settings = SessionSettings()
    expected = open_session(program.file, settings, as_it_is=True).run(feed)
    lists = dict(zip(("AS-0",), class_lists(program), strict=False))
    chosen = {"BL": Selection(), **lists, **{each.rewrites[0]: each for each in GOOD_LISTS}}
    found: dict[str, Open] = {}
    for name, each in chosen.items():
        try:
            file, kept = rewriter.rewritten(each.rewrites).file, rewriter.new_file()
            session = open_session(file, settings, each.disabled, keep=kept, apart=True)
            wrong = difference(session.run(feed), expected, tolerance(each.rewrites))
        except PlanishError as error:
            print(f"{program.file.stem}: {name}: {error}", file=sys.stderr)
            continue
        if wrong:
            print(f"{program.file.stem}: {name}: {wrong}", file=sys.stderr)
            continue
        found[name] = partial(open_session, file, settings, each.disabled)
        found[f"{name}, offline"] = partial(open_session, kept, settings, as_it_is=True)
    return found


def _measure(make: Open, feed: Feed, spent: Spent, calls: int = 3) -> None:
    start = time.process_time()
    session = make()
    spent.creation.append(time.process_time() - start)
    session.run(feed)
    start = time.process_time()
    for _ in range(calls):
        session.run(feed)
    spent.latency.append((time.process_time() - start) / calls)


def _cell(values: list[float], base: list[float]) -> str:
    value, usual = statistics.median(values), statistics.median(base)
    return f"{1e3 * value:.1f} | {value / usual - 1:+.0%}"


if __name__ == "__main__":
    main()
