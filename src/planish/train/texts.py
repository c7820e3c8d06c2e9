"""Texts of a labeled corpus for the training of a language model, as a file of tokens has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from planish.core import PlanishError, rng
from planish.levels.llvm.ir.features import instruction_schema
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.space import PassSpace
from planish.models.decoder import DecoderShape
from planish.models.feedback import Kind
from planish.models.ir_text import ALL, Tasks, Tokenizer
from planish.models.policy_files import SavedPolicy
from planish.train.corpus.answers import (
    TextExample,
    answers_of,
    evaluate_answers,
    feedback_samples,
    held_back,
    read_text_examples,
    text_samples,
)
from planish.train.cost_tables import read_joined
from planish.train.labeling.choice import lists_of_table
from planish.train.samples import Sample
from planish.train.token_file import TokenFile

FED_BACK = 2_000
"""Answers, at most, that are given feedback."""
VALIDATED = 1_000
"""Functions for validation, at most, as in the thesis (4.3.3): all are read at each evaluation."""


@dataclass(frozen=True)
class TextPlan:
    """What the texts are made of.

    Args:
        objective: what is made less.
        context: tokens of the longest text; functions that do not fit are left out.
        tasks: what is asked beside the list.
        first: a language model whose vocabulary is used; None learns one.
        feedback: the kind of feedback on answers of `first`, which are texts, too; None for no such texts.
        device: of PyTorch, where `first` answers.
    """

    objective: str = "instructions"
    context: int = 2048
    tasks: Tasks = ALL
    first: SavedPolicy | None = None
    feedback: Kind | None = None
    device: str = "cpu"


def make_texts(corpus: Path, labels: Sequence[Path], plan: TextPlan) -> tuple[TokenFile, int]:
    """Write the training functions of a corpus, with the best lists that are known of them, as tokens.

    Of every eighth package, functions are for validation.

    Args:
        corpus: the folder of a corpus, or a file of JSON lines.
        labels: tables of what lists cost on functions; the lists that all have count.
        plan: of the texts.

    Returns:
        The texts, and how many functions there were.

    Raises:
        PlanishError: there is no corpus, the tables do not fit it, or `first` is no language model of these
            passes.
    """
    table = read_joined(labels, plan.objective)
    lists = lists_of_table(table.split("train"), plan.objective, len(table.columns.lists))
    examples = read_text_examples(corpus, [table], plan.objective, lists, "train")
    back = held_back(np.array([one.package for one in examples]))
    mine, others = (
        [a for a, b in zip(examples, back, strict=True) if bool(b) == side] for side in (False, True)
    )
    if plan.first is None:
        tokenizer = Tokenizer.learnt((one.ir for one in mine), [*elements()])
    else:
        require_passes(plan.first, {name for one in examples for name in one.answer.passes})
        tokenizer = Tokenizer.read(plan.first.vocabulary)
    # What it learnt from feedback stays with a model where it learns on without.
    feedback = plan.feedback or (plan.first.feedback if plan.first else "")
    others = others or mine
    others = [others[index] for index in rng(0).permutation(len(others))[:VALIDATED].tolist()]
    samples, held = (_samples(tokenizer, some, plan) for some in (mine, others))
    longest = max(len(one.answer.passes) for one in examples)
    schema = instruction_schema(plan.objective)
    return TokenFile(tokenizer, plan.context, schema, longest, feedback, samples, held), len(examples)


def _samples(tokenizer: Tokenizer, examples: Sequence[TextExample], plan: TextPlan) -> list[Sample]:
    """Write examples as texts: all of them plainly, and some with feedback, too."""
    plain = text_samples(tokenizer, examples, plan.context, plan.tasks)
    if plan.feedback is None or plan.first is None:
        return plain
    some, shape = examples[:FED_BACK], plan.first.shape
    assert isinstance(shape, DecoderShape)
    code = plan.feedback != "fast"
    answers = answers_of(shape, plan.first.parameters, tokenizer, some, code=code, device=plan.device)
    evaluated = evaluate_answers(some, answers)
    return plain + feedback_samples(tokenizer, evaluated, plan.context, plan.feedback, plan.tasks)


def require_passes(policy: SavedPolicy, named: Collection[str] = ()) -> None:
    """Make sure that a language model writes passes of this LLVM, and can write those that are named.

    Args:
        policy: the model.
        named: passes of labels, which it would spell as text if it had no tokens for them.

    Raises:
        PlanishError: it is none, does not, or cannot.
    """
    hint = "Train a new one."
    if not isinstance(policy.shape, DecoderShape):
        raise PlanishError(f"the policy {policy.name} is not a language model", hint)
    objective = policy.schema.name.rpartition("/")[2]
    if why := policy.unfit(PassSpace([*elements().values()], objective=objective)):
        raise PlanishError(f"the policy {policy.name} {why}", hint)
    if missing := sorted({*named} - {*policy.actions}):
        what = f"the policy {policy.name} has no tokens for passes of the labels"
        raise PlanishError(f"{what}: {', '.join(missing[:3])}", hint)
