"""What batches of like lengths are worth when a language model is trained: padding, and tokens a second.

Run `python benchmarks/text_batches.py [CORPUS]`, with OMP_NUM_THREADS=1 where others use the machine. It
needs torch. Texts are functions of a corpus, the shipped sample for want of one, twice each, as prompt and
answer. Both ways read the same texts alternately, with a gradient: in batches in the order of drawing, and in
those of `in_batches`, which the training has. Their losses are the same.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from planish.core import rng
from planish.levels.llvm.passes.catalogue import elements
from planish.models.decoder import DecoderShape
from planish.models.ir_text import Tokenizer, question
from planish.train.corpus.reader import SAMPLE, read_corpus
from planish.train.samples import Sample, in_batches

POOL = 4096
"""Texts that a training draws together, as `planish.train.text_training` has it."""
Batches = Sequence[Sequence[Sample]]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path, nargs="?", default=SAMPLE)
    given.add_argument("--texts", type=int, default=300, help="that are timed")
    given.add_argument("--context", type=int, default=1024)
    given.add_argument("--batch", type=int, default=8192)
    given.add_argument("--turns", type=int, default=2)
    asked = given.parse_args()
    texts, tokens = texts_of(asked.corpus, asked.context)
    ways: Mapping[str, Callable[[Sequence[Sample]], Batches]] = {
        "in the order of drawing": lambda some: as_drawn(some, asked.batch),
        "of like lengths": lambda some: in_batches(some, asked.batch),
    }
    found = timed({name: way(texts[: asked.texts]) for name, way in ways.items()}, tokens, asked)
    print(
        f"{len(texts):,} texts, {np.mean([len(one.tokens) for one in texts]):,.0f} tokens in the mean; ",
        end="",
    )
    print(f"{asked.texts} of them timed\n\n| batches | padding, all | timed | tokens/s | nats a token |")
    print("|---|---|---|---|---|")
    for name, way in ways.items():
        rate, nats = found[name]
        print(f"| {name} | {padding(way(texts)):.1%} | {padding(way(texts[: asked.texts])):.1%} ", end="")
        print(f"| {rate:,.0f} | {nats:.5f} |")


def texts_of(corpus: Path, context: int) -> tuple[list[Sample], int]:
    """Give texts that fit into the context, in an order drawn by chance, and the size of the vocabulary."""
    rows = list(read_corpus(corpus, None if corpus == SAMPLE else "train"))
    drawn = [rows[place].ir for place in rng(0).permutation(len(rows))[:POOL].tolist()]
    tokenizer = Tokenizer.learnt(drawn, [*elements()])
    asked = [question(tokenizer, ir) for ir in drawn]
    whole = [Sample(np.array(tokens * 2, np.int32), len(tokens)) for tokens in asked]
    return [one for one in whole if len(one.tokens) <= context], tokenizer.size


def as_drawn(samples: Sequence[Sample], most: int) -> Batches:
    """Fill batches in the order of the texts."""
    found, longest = list[list[Sample]](), 0
    for one in samples:
        longest = max(longest, len(one.tokens))
        if not found or (len(found[-1]) + 1) * longest > most:
            found.append([])
            longest = len(one.tokens)
        found[-1].append(one)
    return found


def padding(batches: Batches) -> float:
    """Give the share of what is read that is padding."""
    read = sum(len(batch) * max(len(one.tokens) for one in batch) for batch in batches)
    return 1 - sum(len(one.tokens) for batch in batches for one in batch) / read


def timed(
    ways: Mapping[str, Batches], tokens: int, asked: argparse.Namespace
) -> Mapping[str, tuple[float, float]]:
    """Read all batches of each way, alternately; give tokens a second in the median, and nats a token."""
    import torch

    from planish.train.text_training import first_weights_of
    from planish.train.torch_decoder import nll_sum, text_batch, turns_of

    shape = DecoderShape(tokens, asked.context)
    torch.manual_seed(0)
    weights = {name: each.requires_grad_() for name, each in first_weights_of(shape).items()}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    turns = turns_of(shape, "cpu")
    nats = dict[str, float]()
    for batches in ways.values():
        nll_sum(shape, weights, text_batch(batches[0]), turns).backward()  # what comes first is slow
    for _ in range(asked.turns):
        for name, batches in ways.items():
            start, whole = time.perf_counter(), 0.0
            for batch in batches:
                loss = nll_sum(shape, weights, text_batch(batch), turns)
                loss.backward()
                whole += loss.item()
            read = sum(len(one.tokens) for batch in batches for one in batch)
            learnt = read - sum(one.begin for batch in batches for one in batch)
            nats[name] = whole / learnt
            rates[name].append(read / (time.perf_counter() - start))
    return {name: (statistics.median(some), nats[name]) for name, some in rates.items()}


if __name__ == "__main__":
    main()
