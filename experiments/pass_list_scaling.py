"""How what a policy over pass lists saves grows with the network and with the functions that it learns from.

    python experiments/pass_list_scaling.py CORPUS OUT.jsonl --labels FILE ... [--width 32 64]

Each training is a line of OUT.jsonl; those that are there are not made again, and one that was broken off
goes on. `--kinds` tells what is trained: the reader; without its auxiliary tasks; the writer, which writes
lists pass by pass; without its own; the gate's trees. All learn from the same functions, and are judged on
packages that none learnt from, by costs of the tables, with -Oz behind them.
`pass_list_scaling_tables.py OUT.jsonl` prints tables and fit.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from gate import LABELS
from gate_model import train_gate
from pass_list_bench import OBJECTIVE, Bench, Floats, Run, bench_of, judge, some
from planish.levels.llvm.passes.catalogue import elements, find_element
from planish.levels.llvm.passes.space import oz_of
from planish.models.networks import ReaderShape, predict_lists
from planish.models.policy_files import SavedPolicy
from planish.models.writer import WriterShape
from planish.train.continuations import evaluate_lists
from planish.train.list_ranker import RankerConfig, train_ranker
from planish.train.list_writer import ListVocabulary, WriterConfig, train_writer
from planish.train.optimization import TrainingProgress
from planish.train.samples import GAIN, ListDataset


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("out", type=Path)
    given.add_argument("--labels", type=Path, nargs="+", default=[LABELS])
    given.add_argument("--kinds", nargs="*", default=["trees", "reader"], choices=[*KINDS], metavar="KIND")
    given.add_argument("--width", type=int, nargs="*", default=[32, 64, 128])
    given.add_argument("--share", type=float, nargs="*", default=[0.25, 0.5, 1.0])
    given.add_argument("--epochs", type=int, nargs="*", default=[8])
    asked = given.parse_args()
    bench = bench_of(asked.corpus, asked.labels, asked.out.parent)
    for share in asked.share:
        for kind in asked.kinds:
            what: Run = {"kind": kind, "share": share}
            if kind == "trees":
                keep(asked.out, what, bench, trees)
                continue
            for width in asked.width:
                for epochs in asked.epochs:
                    keep(asked.out, {**what, "width": width, "epochs": epochs}, bench, KINDS[kind])


def keep(out: Path, what: Run, bench: Bench, made: Callable[[Bench, Run], Run]) -> None:
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    if any(what.items() <= run.items() for run in done):
        return
    line = json.dumps({**what, **made(bench, what)})
    print(line[:200], flush=True)
    with out.open("a") as file:
        file.write(line + "\n")


def reader(bench: Bench, what: Run, *, auxiliary: bool = True) -> Run:
    dataset, held = bench.dataset(what["share"])
    config = RankerConfig(
        what["epochs"], 0, checkpoint(bench, what), width=what["width"], auxiliary=auxiliary
    )
    done = list[TrainingProgress]()
    shape, parameters, found = train_ranker(dataset, config, held, done.append)
    if done and done[-1].step < config.epochs:
        raise KeyboardInterrupt  # which the training takes as an end
    about = tuple(map(",".join, dataset.lists)), max(map(len, dataset.lists)), shape, parameters, found
    return record_of(bench, SavedPolicy("scaled", "llvm", dataset.schema, *about, int((~held).sum())))


def writer(bench: Bench, what: Run, auxiliary: float = 0.3) -> Run:
    dataset, held = bench.dataset(what["share"])
    oz = oz_of({*elements()})
    assert oz is not None
    texts = ListVocabulary.of(dataset.lists, (oz,))
    once = tuple(place for place, text in enumerate(texts.steps) if find_element(text).is_pipeline)
    shape = WriterShape(
        sizes=dataset.sizes,
        rows=dataset.observed.shape[1],
        tokens=len(texts.steps),
        longest=texts.lists.shape[1],
        once=once,
        width=what["width"],
    )
    config = WriterConfig(what["epochs"], 0, checkpoint(bench, what), auxiliary=auxiliary)
    done = list[TrainingProgress]()
    parameters, found = train_writer(dataset, texts, shape, config, held, done.append)
    if done and done[-1].step < done[-1].steps:
        raise KeyboardInterrupt  # which the training takes as an end
    about = texts.steps, shape.longest, shape, parameters, found
    return record_of(bench, SavedPolicy("scaled", "llvm", dataset.schema, *about, int((~held).sum())))


def checkpoint(bench: Bench, what: Run) -> Path:
    return bench.folder / f"{'-'.join(str(value) for value in what.values())}.checkpoint"


def record_of(bench: Bench, policy: SavedPolicy) -> Run:
    count = sum(array.size for array in policy.parameters.values())
    about = {"functions": policy.programs, "parameters": count, **policy.metrics}
    return {**about, **judged_network(bench, policy)}


def judged_network(bench: Bench, policy: SavedPolicy) -> Run:
    """Tell what its most probable lists save, each function alike, and a reader's gains, spent over all."""
    alike = dict[str, Mapping[str, float]]()
    for part in ("validation", "test"):
        alike[part] = evaluate_lists(policy, some(bench.judged, bench.parts[part]))
    if not isinstance(policy.shape, ReaderShape):
        return {"alike": alike}
    return {"alike": alike, **judge(bench, partial(network_gains, policy.shape, policy.parameters))}


def network_gains(shape: ReaderShape, parameters: Mapping[str, Floats], dataset: ListDataset) -> Floats:
    said = predict_lists(shape, parameters, dataset.observed)[:, 0]
    return (np.maximum(said, 0) * GAIN * dataset.baseline[:, None]).astype(np.float32)


def trees(bench: Bench, what: Run) -> Run:
    dataset, held = bench.dataset(what["share"])
    # Nothing tells trees when to stop, but they are given no more than the networks learn from.
    gate = train_gate(bench.rows(dataset).take(~held), OBJECTIVE, dataset.lists)

    def gains(asked: ListDataset) -> Floats:
        table = bench.rows(asked)
        return gate.gains(table.features, table.unoptimized[:, 0], table.baseline[:, 0])

    return {"functions": int((~held).sum()), **judge(bench, gains)}


KINDS = {
    "trees": trees,
    "reader": reader,
    "gains alone": partial(reader, auxiliary=False),
    "writer": writer,
    "lists alone": partial(writer, auxiliary=0),
}


if __name__ == "__main__":
    main()
