"""Answers of language models, evaluated by a compiler, and the feedback samples made of them (thesis 5.4)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.passes.compiled_lists import Compiled, compile_lists, reading_error
from planish.models.decoder import ROOM, CutTextWarning, DecoderShape, continued, read_question
from planish.models.feedback import (
    Feedback,
    Kind,
    bleu,
    error_class,
    feedback_of,
    feedback_tokens,
    same_code,
    verdict_token,
)
from planish.models.ir_text import ALL, Answer, Tasks, Tokenizer, answer_tokens, question, read_answer
from planish.models.networks import Parameters
from planish.train.corpus.datasets import TextExample
from planish.train.samples import Sample


@dataclass(frozen=True)
class EvaluatedAnswer:
    """An answer, and what came of it.

    Args:
        example: of what.
        answer: the model's.
        compiled: what its list makes of the function; None where it failed.
        error: what is wrong with the code that it wrote, by its class; "" where nothing is.
        bleu: of that code, beside what its list makes of the function; None without either.
        exact: whether it is the same.
    """

    example: TextExample
    answer: Answer
    compiled: Compiled | None
    error: str = ""
    bleu: float | None = None
    exact: bool = False

    @property
    def cost(self) -> int:
        """Instructions after the list; without a list that can be run, the function's own."""
        before = self.example.answer.before
        return self.compiled.instructions if self.compiled else before or 0


def answers_of(
    shape: DecoderShape,
    parameters: Parameters,
    tokenizer: Tokenizer,
    examples: Sequence[TextExample],
    *,
    code: bool,
) -> list[Answer]:
    """Let a model answer greedily (4.3).

    Args:
        shape: of the network.
        parameters: of it.
        tokenizer: of it.
        examples: functions; long ones are cut, as they are where the model is used.
        code: whether it writes the optimised code, too, which takes most of the time.
    """
    names = ("[end]",) if code else ("[code]", "[end]")
    ends: Set[int] = {tokenizer.token(name) for name in names}
    found = list[Answer]()
    for example in examples:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CutTextWarning)
            _, memory = read_question(shape, parameters, tokenizer, example.ir)
        tokens, _ = continued(shape, parameters, memory, ends, None if code else ROOM)
        found.append(read_answer(tokenizer, [token for token in tokens if code or token not in ends]))
    return found


def evaluate_answers(examples: Sequence[TextExample], answers: Sequence[Answer]) -> list[EvaluatedAnswer]:
    """Compile the lists of answers, and read their code."""
    backend = open_backend()
    jobs = [(example.ir, answer.passes) for example, answer in zip(examples, answers, strict=True)]
    found = list[EvaluatedAnswer]()
    for example, answer, made in zip(examples, answers, compile_lists(backend, jobs), strict=True):
        one = EvaluatedAnswer(example, answer, made)
        if answer.code is not None:
            error = reading_error(backend, answer.code)
            one = replace(
                one,
                error=error_class(error) if error else "",
                bleu=bleu(answer.code, made.code) if made else None,
                exact=made is not None and same_code(answer.code, made.code),
            )
        found.append(one)
    return found


def summary(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return what answers are worth, in the columns of figures 4.4, 4.5 and 4.6; at least one answer.

    Shares are of all answers, those without code or counts included, unless a name says otherwise.
    """
    oz = np.array([one.example.oz for one in evaluated], float)
    cost, best = (
        np.array(each, float)
        for each in ([one.cost for one in evaluated], [one.example.answer.after for one in evaluated])
    )
    found = {
        "functions": float(len(evaluated)),
        "functions improved": float((cost < oz).sum()),
        "functions regressed": float((cost > oz).sum()),
        "instructions saved": float(np.maximum(oz - cost, 0).sum()),
        "instructions regressed": float(np.maximum(cost - oz, 0).sum()),
        "improvement": 1 - cost.sum() / oz.sum(),
        "improvement with -Oz as backup": 1 - np.minimum(cost, oz).sum() / oz.sum(),
        "improvement of the labels": 1 - np.minimum(best, oz).sum() / oz.sum(),
        "lists that fail": float(np.mean([one.compiled is None for one in evaluated])),
    }
    found |= _count_quality(evaluated)
    if any(one.answer.code is not None for one in evaluated):
        found |= _code_quality(evaluated)
    return found


def _count_quality(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return how good counts are: shares that are right, and mean errors of those that there are (MAPE)."""
    pairs = {
        "before": [(one.answer.before, one.example.answer.before) for one in evaluated],
        "after": [(one.answer.after, one.compiled and one.compiled.instructions) for one in evaluated],
    }
    found = dict[str, float]()
    for name, some in pairs.items():
        known = [(mine, true) for mine, true in some if mine is not None and true]
        if known:
            found[f"count {name} right"] = sum(mine == true for mine, true in known) / len(some)
            found[f"count {name} MAPE"] = sum(abs(mine - true) / true for mine, true in known) / len(known)
    return found


def _code_quality(evaluated: Sequence[EvaluatedAnswer]) -> Mapping[str, float]:
    """Return how good written code is; an answer without code does not compile, and scores nothing."""
    wrote = [one for one in evaluated if one.answer.code is not None]
    return {
        "BLEU": sum(one.bleu or 0.0 for one in wrote) / len(evaluated),
        "code compiles": sum(not one.error for one in wrote) / len(evaluated),
        "exact match": sum(one.exact for one in wrote) / len(evaluated),
    }


def feedback_on(one: EvaluatedAnswer) -> Feedback:
    """Return a compiler's feedback on an answer."""
    made = one.compiled
    after, code = (made.instructions, made.code) if made else (None, None)
    return feedback_of(one.answer, one.example.ir, after, code, one.error, one.bleu or 0.0)


def retry_prompt(tokenizer: Tokenizer, one: EvaluatedAnswer, kind: Kind) -> list[int]:
    """Return the tokens up to where a model tries again (figure 5.4): prompt, answer, feedback.

    For fast feedback the answer ends before its code, which was never written.
    """
    asked = question(tokenizer, one.example.ir)
    answer = answer_tokens(tokenizer, one.answer, Tasks(code=kind != "fast"))
    feedback = feedback_tokens(tokenizer, feedback_on(one), kind)
    return [*asked, *(answer[:-1] if kind == "fast" else answer), *feedback]


def feedback_samples(
    tokenizer: Tokenizer, evaluated: Sequence[EvaluatedAnswer], context: int, kind: Kind, tasks: Tasks = ALL
) -> list[Sample]:
    """Write answers, their feedback, and the answers that were expected; those too long are left out.

    What is expected begins with "I am sure!" where the model foresaw what its list does, else with "Let me
    try again." (5.4.1).

    Args:
        tokenizer: of the model.
        evaluated: the model's own answers.
        context: tokens of the longest text.
        kind: of feedback.
        tasks: what is asked beside the list.
    """
    found = list[Sample]()
    for one in evaluated:
        prompt = retry_prompt(tokenizer, one, kind)
        verdict = verdict_token(tokenizer, sure=feedback_on(one).sure)
        whole = [*prompt, verdict, *answer_tokens(tokenizer, one.example.answer, tasks)]
        if len(whole) <= context:
            found.append(Sample(np.array(whole, np.int32), len(prompt)))
    return found
