"""Feedback of the compiler, against sampling with as many answers: figures 5.1, 5.2 and 5.5 to 5.8.

    python experiments/thesis_ch5/feedback.py CORPUS LABELS... --model FILE --fed FILE...

All are made by `planish policy train --network decoder`, those of `--fed` with `--first` the first, from
texts by `planish corpus tokens --feedback KIND`; each receives the kind that it was trained with. All tables
are of functions of `--split`, compiled; -Oz stands behind every list.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from planish.core import Candidate, PolicyState, Space
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.passes.catalogue import elements
from planish.levels.llvm.passes.pipeline import passes_of
from planish.levels.llvm.passes.space import PassSpace, compile_lists
from planish.models.decoder import CutTextWarning, DecoderShape
from planish.models.ir_text import Tokenizer
from planish.models.language_policy import USUAL, LanguageModelPolicy
from planish.models.policy_files import SavedPolicy, load_policy
from planish.search.decoding import Decoding, PrefixTree, decode, priority_samples
from planish.search.policies import greedy_end, revised
from planish.train.corpus.answers import (
    EvaluatedAnswer,
    TextExample,
    answers_of,
    evaluate_answers,
    feedback_on,
    read_text_examples,
)
from planish.train.cost_tables import read_joined

STEPS = 5
"""Answers of each function, as in figure 5.8."""
TEMPERATURES = (0.2, 0.6, 1.0, 1.4)
SAMPLES = (1, 3, 10)
"""Answers that are drawn at each temperature, by nucleus sampling (figures 5.6 and 5.7)."""


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("corpus", type=Path)
    given.add_argument("labels", type=Path, nargs="+")
    given.add_argument("--model", type=Path, required=True)
    given.add_argument("--fed", type=Path, nargs="+", required=True)
    given.add_argument("--split", default="validation")
    given.add_argument("--functions", type=int, default=200)
    asked = given.parse_args()
    warnings.simplefilter("ignore", CutTextWarning)  # one for each function and model would hide the tables
    table = read_joined(asked.labels, "instructions")
    lists = table.columns.lists
    examples = read_text_examples(asked.corpus, [table], "instructions", lists, asked.split)[
        : asked.functions
    ]
    model, fed = load_policy(asked.model), [load_policy(path) for path in asked.fed]
    correlations(answered(model, examples))
    iterating(model, fed, examples)
    sampling(model, fed, examples)


def answered(model: SavedPolicy, examples: Sequence[TextExample]) -> list[EvaluatedAnswer]:
    assert isinstance(model.shape, DecoderShape)
    tokenizer = Tokenizer.read(model.vocabulary)
    answers = answers_of(model.shape, model.parameters, tokenizer, examples, code=True)
    return evaluate_answers(examples, answers)


def correlations(judged: Sequence[EvaluatedAnswer]) -> None:
    """Figures 5.1 and 5.2: metrics that are known without labels, and correlations with the gain."""
    metrics = [feedback_on(one).metrics for one in judged]
    worth = np.array(
        [(min(one.example.answer.after or 0, one.example.oz) - one.cost) / one.example.oz for one in judged]
    )
    names = dict.fromkeys(name for found in metrics for name in found)
    print(f"{len(judged)} functions\n\n| metric (5.1) | known of | correlation |\n|---|---|---|")
    for name in names:
        known = [place for place, found in enumerate(metrics) if name in found]
        values = np.array([metrics[place][name] for place in known])
        correlation = (
            np.corrcoef(values, worth[known])[0, 1] if values.std() and worth[known].std() else np.nan
        )
        print(f"| {name} | {len(known)} | {correlation:.2f} |")
    right = np.array([feedback_on(one).sure for one in judged])
    for name, those in (("right", right), ("wrong", ~right)):
        if those.any():
            print(
                f"\nthe count after is {name} (5.2): {those.sum()}, "
                f"as good as the labels {np.mean(worth[those] >= 0):.1%}"
            )


def iterating(model: SavedPolicy, fed: Sequence[SavedPolicy], examples: Sequence[TextExample]) -> None:
    """Figures 5.5 and 5.8: one, two and up to five answers, by feedback and by Priority Sampling."""
    rows = {"the model, its most probable lists": [sampled_lists(model, one) for one in examples]}
    for each in fed:
        name = f"{each.feedback or USUAL} feedback ({each.name}), until it is sure"
        rows[name] = [told_lists(each, one) for one in examples]
    oz = sum(one.oz for one in examples)
    print(f"\n| saved over -Oz, answers | {' | '.join(str(n) for n in range(1, STEPS + 1))} | in the mean |")
    print("|---" * (STEPS + 2) + "|")
    for name, lists in rows.items():
        saved = [
            sum(best(one, some[:n]) for one, some in zip(examples, lists, strict=True))
            for n in range(1, STEPS + 1)
        ]
        mean = np.mean([len(some) for some in lists])
        print(f"| {name} | {' | '.join(f'{1 - each / oz:.2%}' for each in saved)} | {mean:.1f} |")


def best(example: TextExample, costs: Sequence[int | None]) -> int:
    return min([example.oz, *(cost for cost in costs if cost is not None)])


def sampled_lists(model: SavedPolicy, example: TextExample) -> list[int | None]:
    samples = islice(priority_samples(LanguageModelPolicy(model), space_of(example)), STEPS)
    return costs_of(example, list(samples))


def told_lists(model: SavedPolicy, example: TextExample) -> list[int | None]:
    rounds, found = revised(LanguageModelPolicy(model), space_of(example), STEPS), list[int | None]()
    try:
        (candidate,) = next(rounds)
        while True:
            found += costs_of(example, [candidate])
            (candidate,) = rounds.send({candidate.hash: found[-1]})
    except StopIteration:
        return found


def costs_of(example: TextExample, candidates: Sequence[Candidate]) -> list[int | None]:
    jobs = [(example.ir, passes_of(candidate)) for candidate in candidates]
    return [one.instructions if one else None for one in compile_lists(open_bindings(), jobs)]


def sampling(model: SavedPolicy, fed: Sequence[SavedPolicy], examples: Sequence[TextExample]) -> None:
    """Figures 5.6 and 5.7: answers drawn from the model, and from the others after their first feedback."""
    oz = sum(one.oz for one in examples)
    print(f"\n| saved over -Oz, answers drawn | temperature | {' | '.join(map(str, SAMPLES))} |")
    print("|---" * (len(SAMPLES) + 2) + "|")
    for each in (model, *fed):
        with_feedback = each is not model
        drawing = [Drawing(each, one, with_feedback=with_feedback) for one in examples]
        name = (
            f"{each.feedback or USUAL} feedback ({each.name}), after the first answer"
            if with_feedback
            else "the model"
        )
        for temperature in TEMPERATURES:
            lists = [one.costs(temperature, seed) for seed, one in enumerate(drawing)]
            left = [
                sum(best(one, some[:n]) for one, some in zip(examples, lists, strict=True)) for n in SAMPLES
            ]
            print(f"| {name} | {temperature:g} | {' | '.join(f'{1 - cost / oz:.2%}' for cost in left)} |")


class Drawing:
    """Draws answers for a function; what was said and compiled is remembered for all temperatures.

    Args:
        saved: the model.
        example: the function.
        with_feedback: whether what is drawn follows feedback on its most probable answer.
    """

    def __init__(self, saved: SavedPolicy, example: TextExample, *, with_feedback: bool) -> None:
        self._policy, self._example, self._with_feedback = LanguageModelPolicy(saved), example, with_feedback
        self._known = dict[str, int | None]()

    def costs(self, temperature: float, seed: int) -> list[int | None]:
        """Give what answers cost; where the model is sure of its first one, that one alone."""
        first, tree = self._begun
        how = Decoding("nucleus", SAMPLES[-1], seed, temperature)
        drawn = [] if tree is None else [node.candidate for node in decode(tree, how)]
        new = {one.hash: one for one in (*first, *drawn) if one.hash not in self._known}
        self._known |= zip(new, costs_of(self._example, list(new.values())), strict=True)
        return [self._known[one.hash] for one in (*first, *drawn)][: SAMPLES[-1]]

    @cached_property
    def _begun(self) -> tuple[list[Candidate], PrefixTree | None]:
        space = space_of(self._example)
        if not self._with_feedback:
            return [], PrefixTree(self._policy, space)
        end = greedy_end(self._policy, self._policy.begin(space))
        (cost,) = costs_of(self._example, [end.candidate])
        state = self._policy.revise(end, cost)
        return [end.candidate], None if state is None else PrefixTree(Begun(self._policy, state), space)


class Begun:
    """A policy that goes on from where it stands.

    Args:
        policy: the policy.
        state: where.
    """

    def __init__(self, policy: LanguageModelPolicy, state: PolicyState) -> None:
        self._state = state
        self.log_probabilities, self.extend = policy.log_probabilities, policy.extend

    def begin(self, space: Space) -> PolicyState:  # noqa: ARG002
        """Give the state."""
        return self._state


def space_of(example: TextExample) -> PassSpace:
    return PassSpace([*elements().values()], ir=example.ir)


if __name__ == "__main__":
    main()
