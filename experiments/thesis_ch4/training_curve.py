"""Figure 4.4: a small language model while it is trained, judged by compiling its greedy answers.

    python experiments/thesis_ch4/training_curve.py CORPUS LABELS... [--steps 900] [--folder build/curve] \
        [--plot page.html]

At each record functions of packages that are held back are answered, such as fit into the context: lists are
compiled, and so is the code that was written. The folder keeps the checkpoint, the records and the model,
`model.safetensors`; the same command goes on from what is there. `answers.py` asks the model for figures 4.5
to 4.9.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from language import Bench, bench_of
from numpy.typing import NDArray
from small_model import BATCH, HELD, RATE, Record, read_records, train_small_model

from planish.levels.llvm.ir.features import instruction_schema
from planish.models.policy_files import SavedPolicy, write_policy
from planish.train.corpus.answers import answers_of, evaluate_answers, summary, text_samples
from planish.train.text_training import TextConfig

EVALUATIONS, VALIDATED = 8, 100
"""Records, at each of which so many texts are read that are held back."""
OBJECTIVE = "instructions"
COLUMNS = (
    "improvement", "improvement with -Oz as backup", "improvement of the labels", "lists that fail",
    "count before right", "count before MAPE", "count after right", "count after MAPE", "BLEU",
    "code compiles", "exact match",
)  # fmt: skip
PANELS = {"(a) lists": COLUMNS[:4], "(b) counts": COLUMNS[4:8], "(c) code": COLUMNS[8:]}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("labels", type=Path, nargs="+")
    given.add_argument("--steps", type=int, default=900)
    given.add_argument("--context", type=int, default=512)
    given.add_argument("--width", type=int, default=96)
    given.add_argument("--depth", type=int, default=3)
    given.add_argument("--judged", type=int, default=32, help="functions that are answered at each record")
    given.add_argument("--folder", type=Path, default=Path("build/curve"))
    given.add_argument("--plot", type=Path, help="where figure 4.4 goes")
    asked = given.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    asked.epochs = 0  # the steps are set here
    bench = bench_of(argparse.Namespace(**{**vars(asked), "judged": None}), short=True)
    records = trained(bench, asked)
    table(records)
    if asked.plot:
        draw(records, asked.plot)


def trained(bench: Bench, asked: argparse.Namespace) -> list[Record]:
    """Train, or go on; give what each record has found."""
    samples, held = (
        text_samples(bench.tokenizer, some, bench.shape.context) for some in (bench.learnt, bench.others)
    )
    every = -(-asked.steps // EVALUATIONS)
    config = TextConfig(asked.steps, 0, asked.folder / "curve.checkpoint", BATCH, rate=RATE, every=every)
    asking = [one for one in bench.held if text_samples(bench.tokenizer, [one], bench.shape.context)]
    asking = asking[: asked.judged]

    def judge(arrays: Mapping[str, NDArray[np.float32]]) -> Mapping[str, float]:
        answers = answers_of(bench.shape, arrays, bench.tokenizer, asking, code=True)
        return summary(evaluate_answers(asking, answers))

    found, metrics = train_small_model(samples, held[:VALIDATED], bench.shape, config, evaluate=judge)
    schema, longest = instruction_schema(OBJECTIVE), max(len(one.answer.passes) for one in bench.learnt)
    made = "curve", "llvm", schema, bench.tokenizer.passes, longest, bench.shape, found, metrics, len(samples)
    write_policy(SavedPolicy(*made, vocabulary=bench.tokenizer.to_json()), asked.folder / "model.safetensors")
    return read_records(config)


def table(records: Sequence[Record]) -> None:
    """Print the three panels of the figure by the tokens that were learnt from."""
    print(f"\n| tokens | held back, nats | {' | '.join(COLUMNS)} |\n|---{'|---' * (len(COLUMNS) + 1)}|")
    for record in records:
        cells = [f"{record[name]:.3f}" if name in record else "" for name in COLUMNS]
        print(f"| {record['tokens']:,} | {record[HELD]:.3f} | {' | '.join(cells)} |")


def draw(records: Sequence[Record], path: Path) -> None:
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    drawn = make_subplots(rows=len(PANELS), cols=1, subplot_titles=[*PANELS], shared_xaxes=True)
    tokens = [record["tokens"] for record in records]
    for place, names in enumerate(PANELS.values(), 1):
        for name in names:
            drawn.add_trace(
                go.Scatter(x=tokens, y=[record.get(name) for record in records], name=name), place, 1
            )
    drawn.update_xaxes(title="tokens", row=len(PANELS))
    drawn.update_layout(template="simple_white", height=1100)
    drawn.write_html(path, include_plotlyjs=True)


if __name__ == "__main__":
    main()
