"""The thesis's language model, from scratch and at a size that this machine trains: figures 4.4 to 4.18.

    python experiments/thesis_ch4/language.py CORPUS LABELS... [--epochs 4] [--width 128] [--depth 4]

Each variant is a training of its own, kept in --folder and taken up from there after an interruption. Every
eighth package is held back; all tables are of functions of those, compiled. With `--model`, a network that
`planish policy train` made of the same corpus and labels answers, and nothing is trained.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from small_model import train_small_model

from planish.core import rng
from planish.levels.llvm.passes.catalogue import elements
from planish.models.decoder import DecoderShape
from planish.models.feedback import bleu, same_code
from planish.models.ir_text import Tasks, Tokenizer
from planish.models.policy_files import load_policy
from planish.train.corpus.answers import (
    EvaluatedAnswer,
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
from planish.train.text_training import TextConfig

BATCH, EVALUATIONS, LISTS = 8192, 8, 40
VARIANTS: Mapping[str, tuple[float, Tasks]] = {
    "all tasks": (1.0, Tasks()),
    "half of the functions": (0.5, Tasks()),
    "a quarter of them": (0.25, Tasks()),
    "without code": (1.0, Tasks(code=False)),
    "lists alone": (1.0, Tasks(counts=False, code=False)),
}
"""Figure 4.18's, and the list alone: share of the functions, tasks."""
Parameters = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Bench:
    """What all variants share.

    Args:
        learnt: functions that are learnt from.
        others: those that are not.
        held: some of the others, which answer.
    """

    learnt: Sequence[TextExample]
    others: Sequence[TextExample]
    held: Sequence[TextExample]
    tokenizer: Tokenizer
    shape: DecoderShape
    epochs: float
    folder: Path


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("labels", type=Path, nargs="+")
    given.add_argument("--epochs", type=float, default=4)
    given.add_argument("--width", type=int, default=128)
    given.add_argument("--depth", type=int, default=4)
    given.add_argument("--context", type=int, default=1024)
    given.add_argument("--judged", type=int, default=200, help="functions that answer")
    given.add_argument("--variants", nargs="*", default=[*VARIANTS], choices=[*VARIANTS], metavar="VARIANT")
    given.add_argument("--folder", type=Path, default=Path("build/language"))
    given.add_argument("--model", type=Path, help="a network that all tasks were asked of")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    bench = bench_of(asked)
    known = load_policy(asked.model) if asked.model else None
    if known is not None:
        assert isinstance(known.shape, DecoderShape)
        bench = replace(bench, tokenizer=Tokenizer.read(known.vocabulary), shape=known.shape)
    scale(bench)
    if known is None:
        found = {name: trained(bench, name) for name in asked.variants}
    else:
        found = {"all tasks": (known.parameters, known.metrics["perplexity held back"])}
    rows = {
        name: (judged(bench, parameters, VARIANTS[name][1]), held)
        for name, (parameters, held) in found.items()
    }
    table(rows)
    if "all tasks" in rows:
        written(rows["all tasks"][0])


def bench_of(asked: argparse.Namespace, *, short: bool = False) -> Bench:
    """Read what is learnt from; where short, only functions that may fit into the context."""
    table = read_joined(asked.labels, "instructions")
    lists = lists_of_table(table.split("train"), "instructions", LISTS)
    if short:
        # A tokenizer makes at least as many tokens as there are lexemes.
        table = table.take(table.lexemes.sum(axis=1) <= asked.context)
    examples = read_text_examples(asked.corpus, [table], "instructions", lists, "train")
    back = held_back(np.array([one.package for one in examples]))
    learnt, held = (
        [one for one, at in zip(examples, back, strict=True) if at == side] for side in (False, True)
    )
    tokenizer = Tokenizer.learnt((one.ir for one in learnt), [*elements()])
    some = [held[place] for place in rng(0).permutation(len(held))[: asked.judged].tolist()]
    shape = DecoderShape(tokenizer.size, asked.context, asked.width, asked.depth)
    return Bench(learnt, held, some, tokenizer, shape, asked.epochs, asked.folder)


def trained(bench: Bench, name: str) -> tuple[Parameters, float]:
    share, tasks = VARIANTS[name]
    kept = rng(1).permutation(len(bench.learnt))[: max(1, round(share * len(bench.learnt)))].tolist()
    samples, held = (
        text_samples(bench.tokenizer, some, bench.shape.context, tasks)
        for some in ([bench.learnt[place] for place in kept], bench.held)
    )
    # As many steps for each variant, as in the thesis.
    whole = sum(len(one.tokens) for one in text_samples(bench.tokenizer, bench.learnt, bench.shape.context))
    steps = max(1, round(bench.epochs * whole / BATCH))
    config = TextConfig(steps, 0, bench.folder / f"{name}.checkpoint", BATCH, every=-(-steps // EVALUATIONS))
    parameters, metrics = train_small_model(samples, held, bench.shape, config)
    return parameters, metrics["perplexity held back"]


def judged(bench: Bench, parameters: Parameters, tasks: Tasks) -> list[EvaluatedAnswer]:
    answers = answers_of(bench.shape, parameters, bench.tokenizer, bench.held, code=tasks.code)
    return evaluate_answers(bench.held, answers)


def scale(bench: Bench) -> None:
    """Say what the claims below are made at, and what copying the input scores (4.3.4)."""
    parameters = sum(int(np.prod(size)) for size in bench.shape.parameters().values())
    lengths = np.array([len(bench.tokenizer.encode(one.ir)) for one in bench.learnt])
    short = np.array([(lengths <= limit).mean() for limit in (256, 512, 1024, 2048)])
    copied = [bleu(one.ir, one.answer.code or "") for one in bench.held]
    same = [same_code(one.ir, one.answer.code or "") for one in bench.held]
    print(f"{parameters:,} parameters; {len(bench.learnt):,} functions, {len(bench.held):,} held back")
    print(f"tokens of a function: {lengths.mean():,.0f} in the mean; at most 256, 512, 1,024, 2,048 (4.10):")
    print(", ".join(f"{value:.0%}" for value in short))
    print(f"copying the input: BLEU {np.mean(copied):.3f}, exact {np.mean(same):.1%} (thesis: 0.531, 0 %)")


def table(rows: Mapping[str, tuple[Sequence[EvaluatedAnswer], float]]) -> None:
    """The columns of figures 4.4, 4.5, 4.6 and 4.18."""
    names = list(dict.fromkeys(name for some, _ in rows.values() for name in summary(some)))
    print(f"\n| variant | perplexity | {' | '.join(names)} |\n|---{'|---' * (len(names) + 1)}|")
    for variant, (some, held) in rows.items():
        found = summary(some)
        cells = [f"{found[name]:.4g}" if name in found else "" for name in names]
        print(f"| {variant} | {held:.2f} | {' | '.join(cells)} |")


def written(some: Sequence[EvaluatedAnswer]) -> None:
    """Figures 4.7, 4.11 and 4.16: passes, classes of errors, and code by what its list is worth."""
    passes = Counter(name for one in some for name in one.answer.passes)
    print("\npasses (4.7):", ", ".join(f"{name} {count}" for name, count in passes.most_common(12)))
    errors = Counter(one.error for one in some if one.error)
    print("errors (4.11):", ", ".join(f"{name} {count}" for name, count in errors.most_common()))
    kinds: Mapping[str, Callable[[EvaluatedAnswer], bool]] = {
        "worse than -Oz": lambda one: one.cost > one.example.oz,
        "as good": lambda one: one.cost == one.example.oz,
        "better": lambda one: one.cost < one.example.oz,
    }
    print("\n| list (4.16) | functions | BLEU | compiles |\n|---|---|---|---|")
    for name, fits in kinds.items():
        those = [one for one in some if fits(one)]
        if those:
            found = summary(those)
            code = f"{found.get('BLEU', 0):.3f} | {found.get('code compiles', 0):.1%}"
            print(f"| {name} | {len(those)} | {code} |")


if __name__ == "__main__":
    main()
