"""Loss of language models of three sizes after equal tokens, and what ten times more parameters would bring.

    planish corpus tokens CORPUS FILE --labels TABLE...
    OMP_NUM_THREADS=1 python experiments/thesis_ch4/scaling.py FILE [--steps 100] [--minutes 10]
    python experiments/thesis_ch4/scaling.py --table

All sizes read the same batches in the same order. After `--minutes` the training stops at its next
checkpoint, and the same command goes on. What each network loses on each text that is held back is kept in
`scaling.json`; `--table` fits the curve to it. Its intervals are of drawing the texts again, not of other
seeds; how far the exponents between neighbors differ shows what the curve itself leaves open.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import rng
from planish.models.decoder import DecoderShape

STORED = Path(__file__).with_suffix(".json")
SIZES = ((32, 2), (64, 3), (128, 4))
"""Width and depth of the networks."""
EVALUATIONS, HELD, DRAWS = 4, 64, 10_000
Results = dict[str, Any]


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("file", type=Path, nargs="?", help="by 'planish corpus tokens'")
    given.add_argument("--steps", type=int, default=100, help="of 2,048 tokens at most")
    given.add_argument("--minutes", type=float, default=math.inf, help="after which it stops, to go on later")
    given.add_argument("--folder", type=Path, default=Path("build/scaling"), help="where checkpoints are")
    given.add_argument("--table", action="store_true", help="show what was stored")
    asked = given.parse_args()
    if not asked.table:
        trained(asked)
    table(json.loads(STORED.read_text()))


def trained(asked: argparse.Namespace) -> None:
    """Train all sizes, the smallest first, and store what they lose on texts that are held back."""
    import torch
    from small_model import BATCH, RATE, train_small_model

    from planish.train.text_training import TextConfig
    from planish.train.token_file import read_tokens
    from planish.train.torch_decoder import nll_sum, text_batch, turns_of

    file, end = read_tokens(asked.file), time.monotonic() + 60 * asked.minutes
    held = [file.held[index] for index in rng(0).permutation(len(file.held))[:HELD].tolist()]
    learnt = [len(one.tokens) - one.begin for one in held]
    asked.folder.mkdir(parents=True, exist_ok=True)
    found: Results = {"steps": asked.steps, "texts": len(file.samples), "answer tokens": learnt, "sizes": []}
    for width, depth in SIZES:
        shape = DecoderShape(file.tokenizer.size, file.context, width, depth)
        count = sum(math.prod(size) for size in shape.parameters().values())
        checkpoint, every = asked.folder / f"{count}.checkpoint", -(-asked.steps // EVALUATIONS)
        config = TextConfig(asked.steps, 0, checkpoint, BATCH, RATE, every, prompts=True, balance=True)
        left = (end - time.monotonic()) / 60
        parameters, metrics = train_small_model(file.samples, held, shape, config, minutes=left)
        weights, turns = (
            {name: torch.from_numpy(each) for name, each in parameters.items()},
            turns_of(shape, "cpu"),
        )
        with torch.no_grad():
            nats = [float(nll_sum(shape, weights, text_batch([one]), turns)) for one in held]
        found["sizes"].append({"parameters": count, "step": metrics["step"], "nats": nats})
        STORED.write_text(json.dumps(found) + "\n")


def table(found: Results) -> None:
    """Print the losses, the power law through them, and what it says of ten times the largest network."""
    counts = np.array([size["parameters"] for size in found["sizes"]], float)
    nats, tokens = (
        np.array([size["nats"] for size in found["sizes"]]),
        np.array(found["answer tokens"], float),
    )
    random = rng(0)
    drawn = random.integers(0, len(tokens), (DRAWS, len(tokens)))
    whole = nats.sum(axis=1) / tokens.sum()
    losses = nats[:, drawn].sum(axis=2) / tokens[drawn].sum(axis=1)  # (sizes, draws)
    print(f"{len(tokens)} texts are held back; {found['steps']} steps; {DRAWS:,} draws of texts\n")
    print("| parameters | best step | nats a token of the answers | 95 % |\n|---|---|---|---|")
    for size, loss, row in zip(found["sizes"], whole, losses, strict=True):
        print(f"| {size['parameters']:,} | {size['step']:.0f} | {loss:.3f} | {interval(row)} |")
    if len(counts) < 3:
        return
    exponent, ahead = fitted(counts, whole[:, None])
    exponents, aheads = fitted(counts, losses)
    print(f"\nthe exponent: {exponent[0]:.3f} ({interval(exponents)})")
    slopes = -np.diff(np.log(whole)) / np.diff(np.log(counts))
    reached = " and ".join(f"{whole[-1] * 10**-slope:.3f}" for slope in slopes)
    print(f"between neighbors: {', '.join(f'{slope:.3f}' for slope in slopes)}; with them {reached} nats")
    print(f"ten times the parameters: {ahead[0]:.3f} nats ({interval(aheads)})")
    saved, saves = 1 - ahead[0] / whole[-1], 1 - aheads / losses[-1]
    print(f"less than the largest one's: {saved:.1%} ({interval(100 * saves, '.1f')} %)")


def fitted(
    counts: NDArray[np.float64], losses: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fit losses (sizes, draws) by a power; return exponents, and losses of ten times the parameters."""
    x = np.log(counts)
    slope, start = np.polyfit(x, np.log(losses), 1)
    return -slope, np.exp(start + slope * (x[-1] + math.log(10)))


def interval(values: NDArray[np.float64] | Sequence[float], form: str = ".3f") -> str:
    low, high = np.quantile(values, (0.025, 0.975))
    return f"{low:{form}} to {high:{form}}"


if __name__ == "__main__":
    main()
