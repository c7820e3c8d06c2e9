"""Figures 4.17 and 4.18: what fewer functions, and leaving out the code, cost a small language model.

    python experiments/thesis_ch4/ablation.py CORPUS... [--labels TABLE...] [--steps 120] \
        [--folder build/ablation] [--plot page.html]

Four networks are trained for as many steps. All learn from functions that fit with their answers into the
context. Each record asks the same functions of packages that are held back: how far their lists and counts
surprise, which all networks learn, and what greedy lists save. The folder keeps checkpoints and records: the
same command goes on, and shows what there is.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from language import LISTS, VARIANTS
from numpy.typing import NDArray
from small_model import BATCH, HELD, RATE, Record, read_records, train_small_model

from planish.core import rng
from planish.levels.llvm.passes.catalogue import elements
from planish.models.decoder import DecoderShape
from planish.models.ir_text import Tasks, Tokenizer
from planish.train.corpus.answers import (
    TextExample,
    answers_of,
    evaluate_answers,
    held_back,
    read_text_examples,
    summary,
    text_samples,
)
from planish.train.cost_tables import read_joined
from planish.train.labeling.choice import lists_of_table
from planish.train.samples import Sample
from planish.train.text_training import TextConfig

LABELS = Path(__file__).parents[1] / "labels"
TABLES = [LABELS / "joined-lists.npz", LABELS / "heldout-joined-lists.npz"]
EVALUATIONS, VALIDATED = 4, 150
"""Records; texts that are held back, at most."""
SHOWN = [name for name in VARIANTS if name != "lists alone"]
NATS, SAVED, BACKED = "nats an answer", "improvement", "improvement with -Oz as backup"


@dataclass(frozen=True)
class Datasets:
    """What all networks share.

    Args:
        learnt: functions that are learnt from.
        held: others, by whose lists and counts networks are judged.
        tokenizer: of all.
        shape: of all.
        judged: so many of the others answer at each record.
    """

    learnt: Sequence[TextExample]
    held: Sequence[TextExample]
    tokenizer: Tokenizer
    shape: DecoderShape
    judged: int

    def asking(self) -> list[Sample]:
        """Give what surprise is measured by: lists and counts, and nothing behind them."""
        samples = text_samples(self.tokenizer, self.held, self.shape.context, Tasks(code=False))
        return [Sample(one.tokens[:-1], one.begin) for one in samples]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS")
    given.add_argument("--labels", type=Path, nargs="+", default=TABLES)
    given.add_argument("--steps", type=int, default=120)
    given.add_argument("--judged", type=int, default=32, help="those first that a list improves")
    given.add_argument("--context", type=int, default=384)
    given.add_argument("--width", type=int, default=96)
    given.add_argument("--depth", type=int, default=3)
    given.add_argument("--variants", nargs="*", default=SHOWN, choices=SHOWN, metavar="VARIANT")
    given.add_argument("--folder", type=Path, default=Path("build/ablation"))
    given.add_argument("--plot", type=Path, help="where figure 4.17 goes")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    datasets = examples_of(asked)
    scale(datasets)
    found = {name: trained(datasets, name, asked) for name in asked.variants}
    by_step(found)
    best(found)
    if asked.plot:
        draw(found, asked.plot)


def examples_of(asked: argparse.Namespace) -> Datasets:
    """Read functions with labels, as many as fit with all of their answers."""
    table = read_joined(asked.labels, "instructions")
    lists = lists_of_table(table.split("train"), "instructions", LISTS)
    # A tokenizer makes at least as many tokens as there are lexemes.
    table = table.take(table.lexemes.sum(axis=1) <= asked.context)
    every = [
        one
        for corpus in asked.corpora
        for one in read_text_examples(corpus, [table], "instructions", lists, None)
    ]
    back = held_back(np.array([one.package for one in every]))
    learnt, held = (
        [one for one, at in zip(every, back, strict=True) if at == side] for side in (False, True)
    )
    tokenizer = Tokenizer.learnt((one.ir for one in learnt), [*elements()])
    shape = DecoderShape(tokenizer.size, asked.context, asked.width, asked.depth)
    learnt, held = (
        [one for one in some if text_samples(tokenizer, [one], asked.context)] for some in (learnt, held)
    )
    some = [held[place] for place in rng(0).permutation(len(held))[:VALIDATED].tolist()]
    return Datasets(learnt, some, tokenizer, shape, asked.judged)


def scale(datasets: Datasets) -> None:
    """Say what the tables are made at."""
    parameters = sum(int(np.prod(size)) for size in datasets.shape.parameters().values())
    print(f"{parameters:,} parameters")
    for name, some in (("learnt from", datasets.learnt), ("held back", datasets.held)):
        packages, better = len({one.package for one in some}), sum(gains(one) > 0 for one in some)
        share = sum(map(gains, some)) / sum(one.oz for one in some)
        print(f"{name}: {len(some):,} functions of {packages} packages; lists improve {better}, {share:.2%}")


def gains(example: TextExample) -> int:
    """Give what the label saves over -Oz."""
    return max(example.oz - (example.answer.after or example.oz), 0)


def trained(datasets: Datasets, name: str, asked: argparse.Namespace) -> list[Record]:
    """Train a network, or go on; give what each record has found."""
    share, tasks = VARIANTS[name]
    kept = rng(1).permutation(len(datasets.learnt))[: max(1, round(share * len(datasets.learnt)))].tolist()
    some = [datasets.learnt[place] for place in kept]
    samples = text_samples(datasets.tokenizer, some, datasets.shape.context, tasks)
    asking = datasets.asking()
    listed = sum(len(one.tokens) - one.begin for one in asking) / len(asking)
    every = -(-asked.steps // EVALUATIONS)
    config = TextConfig(asked.steps, 0, asked.folder / f"{name}.checkpoint", BATCH, rate=RATE, every=every)

    answering = sorted(datasets.held, key=gains, reverse=True)[: datasets.judged]

    def judge(arrays: Mapping[str, NDArray[np.float32]]) -> Mapping[str, float]:
        answers = answers_of(datasets.shape, arrays, datasets.tokenizer, answering, code=False)
        return summary(evaluate_answers(answering, answers))

    train_small_model(samples, asking, datasets.shape, config, evaluate=judge)
    return [{**record, NATS: record[HELD] * listed} for record in read_records(config)]


def by_step(found: Mapping[str, Sequence[Record]]) -> None:
    """Figure 4.17: what is held back, while networks learn."""
    steps = [f"{record['step']:,}" for record in next(iter(found.values()))]
    for name, form in ((NATS, ".3f"), (SAVED, ".2%")):
        print(f"\n| {name}, after steps | {' | '.join(steps)} |\n{'|---' * (EVALUATIONS + 1)}|")
        for variant, records in found.items():
            print(f"| {variant} | {' | '.join(f'{record[name]:{form}}' for record in records)} |")


def best(found: Mapping[str, Sequence[Record]]) -> None:
    """Figure 4.18: the best record of each network."""
    print("\n| network | least nats an answer | at step | most saved | with -Oz behind it | by labels |")
    print("|---" * 6 + "|")
    for variant, records in found.items():
        least = min(records, key=lambda record: record[NATS])
        most = max(records, key=lambda record: record[SAVED])
        backed = max(record[BACKED] for record in records)
        cells = f"{least[NATS]:.3f} | {least['step']:,} | {most[SAVED]:.2%} | {backed:.2%}"
        print(f"| {variant} | {cells} | {most['improvement of the labels']:.2%} |")


def draw(found: Mapping[str, Sequence[Record]], path: Path) -> None:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    drawn = make_subplots(rows=2, cols=1, subplot_titles=[NATS, SAVED], shared_xaxes=True)
    for variant, records in found.items():
        steps = [record["step"] for record in records]
        for row, name in enumerate((NATS, SAVED), 1):
            values = [record[name] for record in records]
            drawn.add_trace(go.Scatter(x=steps, y=values, name=f"{variant}, {name}"), row, 1)
    drawn.update_xaxes(title="steps", row=2)
    drawn.update_layout(template="simple_white", height=800)
    drawn.write_html(path, include_plotlyjs=True)


if __name__ == "__main__":
    main()
