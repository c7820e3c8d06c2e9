"""What a model learns to answer with a compiler's feedback from: its own answers (thesis 5.4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planish.corpus.judged_answers import Judged
from planish.learn.language.feedback import Feedback, Kind, feedback_of, feedback_tokens, verdict_token
from planish.learn.language.prompts import ALL, Tasks, answer_tokens, question
from planish.learn.language.samples import Sample
from planish.learn.language.tokenizer import Tokenizer


def feedback_on(one: Judged) -> Feedback:
    """Give what a compiler tells of an answer."""
    made = one.compiled
    after, code = (made.instructions, made.code) if made else (None, None)
    return feedback_of(one.answer, one.lesson.ir, after, code, one.error, one.bleu or 0.0)


def retry_prompt(tokenizer: Tokenizer, one: Judged, kind: Kind) -> list[int]:
    """Give the tokens up to where a model tries again (figure 5.4): prompt, answer, feedback.

    For fast feedback the answer ends before its code, which was never written.
    """
    asked = question(tokenizer, one.lesson.ir)
    answer = answer_tokens(tokenizer, one.answer, Tasks(code=kind != "fast"))
    told = feedback_tokens(tokenizer, feedback_on(one), kind)
    return [*asked, *(answer[:-1] if kind == "fast" else answer), *told]


def feedback_samples(
    tokenizer: Tokenizer, judged: Sequence[Judged], context: int, kind: Kind, tasks: Tasks = ALL
) -> list[Sample]:
    """Write answers, their feedback, and the answers that were expected; those too long are left out.

    What is expected begins with "I am sure!" where the model foresaw what its list does, else with "Let me
    try again." (5.4.1).

    Args:
        tokenizer: of the model.
        judged: the model's own answers.
        context: tokens of the longest text.
        kind: of feedback.
        tasks: what is asked beside the list.
    """
    found = list[Sample]()
    for one in judged:
        given = retry_prompt(tokenizer, one, kind)
        verdict = verdict_token(tokenizer, sure=feedback_on(one).sure)
        whole = [*given, verdict, *answer_tokens(tokenizer, one.lesson.answer, tasks)]
        if len(whole) <= context:
            found.append(Sample(np.array(whole, np.int32), len(given)))
    return found
