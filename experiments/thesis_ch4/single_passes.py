"""Figure 4.19: a small decoder learns what each of 60 passes makes of code, beside copying the input.

    python experiments/thesis_ch4/single_passes.py CORPUS [--steps 800] [--folder DIR] [--plot page.html]

The data set is made first: training packages are learnt from, those for validation tell which weights are
kept, those for the test are answered. It lies in the folder, with the checkpoint of the training and the
answers; the same command goes on from what is there. Functions are short ones (--chars), since prompt and
answer share the context, and half of them are partly optimized before (thesis 4.5.3).
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from single_pass_examples import single_pass_examples, translation, translation_samples
from single_pass_tables import Translation, show
from small_model import BATCH, RATE, train_small_model

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import base_name, elements
from planish.levels.llvm.passes.space import reading_error
from planish.models.decoder import DecoderShape, continued, remembered
from planish.models.feedback import bleu, same_code
from planish.models.ir_text import Tokenizer
from planish.train.corpus.reader import read_corpus
from planish.train.text_training import TextConfig

PASSES, TRIED = 60, 40
"""So many passes, as in the thesis; those that change most of so many functions each."""
UNCHANGED = 40
EVALUATIONS = 20
Pairs = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class Datasets:
    """The data set: by pass, code before and after it."""

    learnt: Pairs
    held: Pairs
    judged: Pairs


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("--each", type=int, default=300, help="functions of a pass that are learnt from")
    given.add_argument(
        "--judged", type=int, default=8, help="functions of a pass that are answered, at most 12"
    )
    given.add_argument("--chars", type=int, default=1000, help="of the longest function")
    given.add_argument("--context", type=int, default=512)
    given.add_argument("--width", type=int, default=96)
    given.add_argument("--depth", type=int, default=3)
    given.add_argument("--steps", type=int, default=800)
    given.add_argument("--folder", type=Path, default=Path("build/single-passes"))
    given.add_argument("--plot", type=Path, help="where figure 4.19 goes")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    datasets = examples_of(asked)
    tokenizer = Tokenizer.learnt(
        (code for pairs in datasets.learnt.values() for code, _ in pairs), [*elements()]
    )
    shape = DecoderShape(tokenizer.size, asked.context, asked.width, asked.depth)
    parameters = trained(asked, datasets, tokenizer, shape)
    show(answered(asked.folder / "answers.jsonl", datasets.judged, tokenizer, shape, parameters), asked.plot)


def examples_of(asked: argparse.Namespace) -> Datasets:
    """Make the data set, or read it where it was made before."""
    path = asked.folder / f"datasets-{asked.chars}-{asked.each}.json.gz"
    if not path.exists():
        made = json.dumps(make_examples(asked)).encode()
        part = path.with_suffix(".part")
        part.write_bytes(gzip.compress(made, mtime=0))
        part.replace(path)
    read = json.loads(gzip.decompress(path.read_bytes()))
    judged = {name: pairs[: asked.judged] for name, pairs in read["judged"].items()}
    return Datasets(balanced(read["learnt"]), balanced(read["held"]), judged)


def balanced(datasets: Pairs) -> Pairs:
    """Leave out what passes do not change, beyond as much as they change, and at least `UNCHANGED` of each.

    Else five of six texts would teach to copy.
    """
    found = dict[str, Sequence[tuple[str, str]]]()
    for name, pairs in datasets.items():
        equal = [pair for pair in pairs if same_code(*pair)]
        left = {*map(tuple, equal[max(UNCHANGED, len(pairs) - len(equal)) :])}
        found[name] = [pair for pair in pairs if tuple(pair) not in left]
    return found


def make_examples(asked: argparse.Namespace) -> Mapping[str, Pairs]:
    """Choose the passes, and run them on functions of each split."""
    splits = {"learnt": "train", "held": "validation", "judged": "test"}
    rows = {
        kind: [row for row in read_corpus(asked.corpus, split) if row.chars <= asked.chars]
        for kind, split in splits.items()
    }
    forms = {base_name(one.text): one.text for one in reversed([*elements().values()]) if not one.is_pipeline}
    tried = single_pass_examples(rows["learnt"], [*forms.values()], TRIED, 1)
    passes = sorted(sorted(tried, key=lambda name: -changed(tried[name]))[:PASSES])
    counts = {"learnt": asked.each, "held": 4, "judged": 12}
    return {
        kind: single_pass_examples(rows[kind], passes, count, seed)
        for seed, (kind, count) in enumerate(counts.items())
    }


def changed(pairs: Sequence[tuple[str, str]]) -> float:
    """Give the share of functions that a pass changes."""
    return sum(not same_code(*pair) for pair in pairs) / max(1, len(pairs))


def trained(
    asked: argparse.Namespace, datasets: Datasets, tokenizer: Tokenizer, shape: DecoderShape
) -> Mapping[str, NDArray[np.float32]]:
    samples, held = (
        translation_samples(tokenizer, some, shape.context) for some in (datasets.learnt, datasets.held)
    )
    every = -(-asked.steps // EVALUATIONS)
    config = TextConfig(asked.steps, 0, asked.folder / "passes.checkpoint", BATCH, rate=RATE, every=every)
    found, metrics = train_small_model(samples, held, shape, config)
    print(f"the weights of step {metrics['step']:,.0f}: perplexity {metrics['perplexity held back']:.3f}")
    return found


def answered(
    path: Path,
    datasets: Pairs,
    tokenizer: Tokenizer,
    shape: DecoderShape,
    parameters: Mapping[str, NDArray[np.float32]],
) -> list[Translation]:
    """Let the model write what each pass makes of code, greedily; answers that are there are kept."""
    lines = path.read_text().splitlines() if path.exists() else []
    done, bindings = len(lines), open_bindings()
    end = tokenizer.token("[end]")
    jobs = [(name, *pair) for name, pairs in datasets.items() for pair in pairs]
    with path.open("a") as out:
        for name, before, after in jobs[done:]:
            given = translation(tokenizer, before, name)
            tokens = list[int]()
            if len(given) < shape.context:
                memory = remembered(shape, parameters, given)
                tokens, _ = continued(shape, parameters, memory, {end})
            # What the context cuts off has no end, and is no answer.
            code = tokenizer.decode(tokens[:-1]) if tokens[-1:] == [end] else ""
            valid = bool(code) and not reading_error(bindings, code)
            one = Translation(
                name, not same_code(before, after), bleu(before, after), bleu(code, after),
                same_code(code, after), valid,
            )  # fmt: skip
            out.write(json.dumps(one) + "\n")
            out.flush()
    return [Translation(*json.loads(line)) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main()
