"""Figures 4.5 to 4.9 of a language model: what its greedy lists are worth on functions of other packages.

    python experiments/thesis_ch4/answers.py 4.5 CORPUS HELD.npz --model FILE [--folder build/curve]

The model is one of `training_curve.py` or of `planish policy train --network decoder`. HELD is a table of
`planish corpus costs` with functions of CORPUS that nothing learnt from. What was answered lies in the
folder, so that the next figure needs no model: remove `answers.jsonl` for another one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import answer_figures
from answer_figures import LABELS, LISTS, Answered
from baselines import OBJECTIVE

from planish.models.decoder import DecoderShape
from planish.models.ir_text import Tokenizer
from planish.models.policy_files import load_policy
from planish.train.corpus.answers import (
    EvaluatedAnswer,
    TextExample,
    answers_of,
    evaluate_answers,
    read_text_examples,
)
from planish.train.cost_tables import read_costs
from planish.train.labeling.choice import lists_of_table

AT_ONCE = 32
FIGURES: Mapping[str, Callable[[Sequence[Answered], Path], None]] = {
    "4.5": answer_figures.baselines,
    "4.6": answer_figures.with_backup,
    "4.7": answer_figures.passes,
    "4.8": answer_figures.by_package,
    "4.9": answer_figures.by_size,
}


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("figure", choices=[*FIGURES])
    given.add_argument("corpus", type=Path)
    given.add_argument("held", type=Path)
    given.add_argument("--model", type=Path, default=Path("build/curve/model.safetensors"))
    given.add_argument("--folder", type=Path, default=Path("build/curve"))
    asked = given.parse_args()
    FIGURES[asked.figure](answered(asked), asked.held)


def answered(asked: argparse.Namespace) -> list[Answered]:
    """Have the model answer, as far as it has not yet."""
    path = asked.folder / "answers.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    known = [Answered(**json.loads(line)) for line in lines]
    every = {*read_costs(asked.held).identities.tolist()}
    if {one.identity for one in known} >= every:
        return known
    model = load_policy(asked.model)
    assert isinstance(model.shape, DecoderShape)
    tokenizer = Tokenizer.read(model.vocabulary)
    rest = [one for one in examples_of(asked) if one.identity not in {each.identity for each in known}]
    with path.open("a") as out:
        for at in range(0, len(rest), AT_ONCE):
            some = rest[at : at + AT_ONCE]
            answers = answers_of(model.shape, model.parameters, tokenizer, some, code=False)
            found = [answer_of(one, tokenizer) for one in evaluate_answers(some, answers)]
            out.writelines(json.dumps(asdict(one)) + "\n" for one in found)
            known += found
            out.flush()
    return known


def answer_of(one: EvaluatedAnswer, tokenizer: Tokenizer) -> Answered:
    example, label = one.example, one.example.answer
    return Answered(
        identity=example.identity,
        package=example.package,
        tokens=len(tokenizer.encode(example.ir)),
        oz=example.oz,
        cost=one.cost,
        passes=one.answer.passes,
        best=label.after or example.oz,
        label=label.passes,
    )


def examples_of(asked: argparse.Namespace) -> list[TextExample]:
    """Read the functions, with the best of the lists that the model could learn."""
    table = read_costs(asked.held)
    lists = lists_of_table(read_costs(LABELS).split("train"), OBJECTIVE, LISTS)
    splits = sorted(set(table.splits.values()))
    return [
        one for split in splits for one in read_text_examples(asked.corpus, [table], OBJECTIVE, lists, split)
    ]


if __name__ == "__main__":
    main()
