"""planish beside onnxsim, onnxslim and OpenVINO: each model by each of them, on the same runtimes.

    python experiments/architecture_aware/beside.py --folder models --results beside.jsonl

Models have random weights, and are exported by torch's dynamo, raw and optimized by itself. Files are made
once; then all ways to run them are timed alternately, in one process, with one thread: in each round each
has a block of calls, in another order. Times are of the processor, so that what others take does not count,
and medians of rounds; a way's ratio is of the median of ONNX Runtime's defaults to its own. Answers are
compared with those of the model as it came without any optimization. Models that the results have are not
measured again; `--table` prints what is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ways import Answer, ways

from planish.core import rng
from planish.levels.graph.architecture import recognize_file
from planish.levels.graph.feeds import Feed, make_feeds
from planish.levels.graph.sessions import SessionSettings, open_session
from planish.levels.graph.source import load_checked, read_model
from planish.levels.graph.verification import difference, tolerance

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "graph"))

MODELS = (
    *("mobilenetv2", "efficientnet", "resnet18", "cnn", "unet", "yolo", "ssd-mobilenet", "vit"),
    *("bert-4x256", "gpt", "t5", "conformer", "lstm", "dlrm", "gnn", "bert-base"),
)
EXPORTERS = ("dynamo-raw", "dynamo")
MOST_ROUNDS, FEWEST_ROUNDS, BLOCK_S, ALL_S = 45, 9, 0.02, 40.0
BASE = "as it came | ONNX Runtime"


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--folder", type=Path, required=True, help="of models; what is missing is made")
    given.add_argument("--results", type=Path, required=True, help="a line of JSON for each model")
    given.add_argument("--models", nargs="+", default=MODELS)
    given.add_argument("--seconds", type=float, default=20.0, help="of planish's search")
    given.add_argument("--table", action="store_true", help="print what was measured")
    asked = given.parse_args()
    known = _known(asked.results)
    if not asked.table:
        for name in asked.models:
            for exporter in EXPORTERS:
                if f"{name}-{exporter}" not in known:
                    found = measured(_file(name, exporter, asked.folder), asked.seconds)
                    with asked.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(found) + "\n")
                    print(f"{time.strftime('%H:%M')} {found['model']}: {found['ratios']}", flush=True)
    table(_known(asked.results), asked.folder)


def _file(name: str, exporter: Any, folder: Path) -> Path:
    from models.export import Wish, write  # needs torch, which printing does not

    return write(Wish(name, exporter), folder)


def _known(results: Path) -> Mapping[str, Mapping[str, Any]]:
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {row["model"]: row for row in map(json.loads, lines)}


def measured(model: Path, seconds: float) -> dict[str, Any]:
    """Measure all ways to run a model.

    Returns:
        `model`, `took` (seconds of each tool), `failed` (way to why), `latency` (way to its median,
        in seconds), `ratios` (way to the base's seconds by its own) and `rounds`.
    """
    program = read_model(model, {})
    feeds = make_feeds(program, load_checked(program))
    reference = open_session(model, SessionSettings(), as_it_is=True)
    expected = [reference.run(feed) for feed in feeds]
    failed: dict[str, str] = {}
    answers: dict[str, Answer] = {}
    with tempfile.TemporaryDirectory() as folder:
        found, took = ways(model, Path(folder), seconds)
        for way in found:
            try:
                answers[way.name] = answer = way.make()
                bound = tolerance(["intent.fp16"] if "bfloat16" in way.runtime else [])
                differences = [difference(answer(f), e, bound) for f, e in zip(feeds, expected, strict=True)]
                wrong = next(filter(None, differences), "")
                failed |= {way.name: wrong} if wrong else {}
            except Exception as error:  # noqa: BLE001  runtimes raise whatever they like
                failed[way.name] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        samples = _in_turns({name: each for name, each in answers.items() if name not in failed}, feeds[0])
    medians = {name: statistics.median(each) for name, each in samples.items()}
    ratios = {name: round(medians[BASE] / each, 3) for name, each in medians.items()}
    return {
        "model": model.stem,
        "took": took,
        "failed": failed,
        "latency": medians,
        "ratios": ratios,
        "rounds": len(samples[BASE]),
    }


def _in_turns(answers: Mapping[str, Answer], feed: Feed) -> Mapping[str, Sequence[float]]:
    """Time each in each round, in another order; gives the seconds of a call by round."""
    once = {name: _block(answer, feed, 3) for name, answer in answers.items()}
    calls = {name: max(1, round(BLOCK_S / seconds)) for name, seconds in once.items()}
    whole = sum(once[name] * count for name, count in calls.items())
    rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(ALL_S / whole)))
    samples: dict[str, list[float]] = {name: [] for name in answers}
    order, names = rng(0, 0), list(answers)
    for _ in range(rounds):
        for place in order.permutation(len(names)):
            name = names[int(place)]
            samples[name].append(_block(answers[name], feed, calls[name]))
    return samples


def _block(answer: Callable[[Feed], object], feed: Feed, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        answer(feed)
    return max(time.process_time() - start, 1e-9) / calls


AGAIN = "itself again"
"""The file as it came, a second time: what differs from 1 there is noise."""
TOOLS = ("onnxsim", "onnxslim", "planish")
OF_OPENVINO = ("as it came", *TOOLS)


def table(known: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Print the ratios to ONNX Runtime's defaults; of the tools on each runtime, the geometric means too."""
    heads = ["model", "class", "ONNX Runtime, ms", AGAIN, *TOOLS]
    heads += [f"OpenVINO, {tool}" for tool in OF_OPENVINO] + ["OpenVINO in bfloat16"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for row in known.values():
        cells = [row["model"], _classes(folder / f"{row['model']}.onnx"), f"{1e3 * row['latency'][BASE]:.3f}"]
        cells += [_cell(row, f"{tool} | ONNX Runtime") for tool in (AGAIN, *TOOLS)]
        cells += [_cell(row, f"{tool} | OpenVINO") for tool in OF_OPENVINO]
        cells.append(_cell(row, "as it came | OpenVINO, bfloat16"))
        print(f"| {' | '.join(cells)} |")
    names = [
        *(f"{tool} | ONNX Runtime" for tool in (AGAIN, *TOOLS)),
        *(f"{tool} | OpenVINO" for tool in OF_OPENVINO),
    ]
    means = [_mean(known, name) for name in (*names, "as it came | OpenVINO, bfloat16")]
    print(f"| geometric mean | | | {' | '.join(means)} |")


def _classes(model: Path) -> str:
    return "+".join(recognize_file(model).classes) if model.exists() else "?"


def _mean(known: Mapping[str, Mapping[str, Any]], name: str) -> str:
    found = [row["ratios"][name] for row in known.values() if name in row["ratios"]]
    return f"{statistics.geometric_mean(found):.2f}" if found else ""


def _cell(row: Mapping[str, Any], name: str) -> str:
    ratio = row["ratios"].get(name)
    return "failed" if ratio is None else f"{ratio:.2f}"


if __name__ == "__main__":
    main()
