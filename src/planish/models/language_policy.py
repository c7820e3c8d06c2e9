"""Language model as a policy: it reads the text of a program and writes a list, a token at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planish.core import CanCompile, Candidate, PlanishError, PolicyState, Space, Step
from planish.models.decoder import ROOM, DecoderShape, Memory, continued, read_question, remembered
from planish.models.feedback import (
    RETRY,
    SURE,
    Feedback,
    Kind,
    bleu,
    error_class,
    feedback_of,
    feedback_tokens,
)
from planish.models.ir_text import Answer, Tokenizer, read_answer
from planish.models.policy_files import SavedPolicy

USUAL: Kind = "fast"
"""The feedback to a model that was trained without feedback, or before its kind was kept."""


COUNTED = "instructions"
"""The unit of all counts in text, whatever is made less."""


def feedback_in(
    space: CanCompile, candidate: Candidate, answer: Answer, cost: float | None, kind: Kind, objective: str
) -> Feedback:
    """Put together what is known of an answer.

    Args:
        space: of the program.
        candidate: the answer's list.
        answer: the model's.
        cost: of what the list makes of the program, by the objective; None where it failed.
        kind: what the model was trained with. All but "fast" has the list run once more, for its code.
        objective: what the cost counts. All but instructions has the list run once more, to count them.
    """
    after = None if cost is None else int(cost)
    if kind == "fast" and objective == COUNTED:
        return feedback_of(answer, space.text, after)
    if after is not None and objective != COUNTED:
        after = space.instructions(candidate)
    if kind == "fast":
        return feedback_of(answer, space.text, after)
    made = None if after is None else space.compiled(candidate)
    said = "" if answer.code is None else space.refused(answer.code)
    alike = 0.0 if answer.code is None or made is None else bleu(answer.code, made)
    return feedback_of(answer, space.text, after, made, error_class(said) if said else "", alike)


@dataclass(frozen=True)
class Page:
    """Key-value cache of one program, shared by all answers.

    Args:
        space: of the program.
        asked: what the prompt is remembered by.
        steps: of each token that is a pass and that the space has.
    """

    space: CanCompile
    asked: Memory
    steps: Mapping[int, Step]

    @cached_property
    def tokens(self) -> Mapping[Step, int]:
        """The token of each step."""
        return {step: token for token, step in self.steps.items()}


@dataclass(frozen=True, eq=False)
class Text:
    """State of an answer after some passes of its list.

    Args:
        page: of its program.
        candidate: the passes so far.
        written: their tokens.
        memory: what the prompt and they are remembered by.
    """

    page: Page
    candidate: Candidate
    written: tuple[int, ...]
    memory: Memory


class AnsweringPolicy:
    """Writes lists as a language model answers; see `planish.models.ir_text`.

    Args:
        saved: the network, its vocabulary, and what it is for.
    """

    def __init__(self, saved: SavedPolicy) -> None:
        assert isinstance(saved.shape, DecoderShape)
        self._saved, self._shape = saved, saved.shape
        self._tokenizer = Tokenizer.read(saved.vocabulary)
        self._end = self._tokenizer.token("[end of list]")
        self._kind: Kind = saved.feedback or USUAL
        # For fast feedback the answer ends before its code, which is then not written.
        names = ("[code]", "[end]") if self._kind == "fast" else ("[end]",)
        self._ends = {self._tokenizer.token(name) for name in names}

    def begin(self, space: Space) -> Text:
        """Read the program of a space; of a long one its beginning, with a `CutTextWarning`.

        Raises:
            PlanishError: the policy is for another space.
        """
        why = self._saved.unfit(space) if isinstance(space, CanCompile) else "reads programs as text"
        if why or not isinstance(space, CanCompile):
            raise PlanishError(f"the policy {self._saved.name} {why}", "planish policy lists others.")
        known = {str(step): step for step in space.actions}
        steps = {self._tokenizer.token(name): known[name] for name in self._tokenizer.passes if name in known}
        _, asked = read_question(self._shape, self._saved.parameters, self._tokenizer, space.text)
        return Text(Page(space, asked, steps), space.start(), (), asked)

    def extend(self, state: PolicyState, step: Step) -> Text:
        """Write a step."""
        assert isinstance(state, Text)
        token = state.page.tokens[step]
        memory = remembered(self._shape, self._saved.parameters, [token], state.memory)
        return Text(state.page, state.candidate.then(step), (*state.written, token), memory)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Share the probability among passes and the list's end: what else the model would say is illegal."""
        return [self._next(state) for state in states if isinstance(state, Text)]

    def revise(self, state: PolicyState, cost: float | None) -> Text | None:
        """Continue the prompt with the outcome of the list, so that the model revises it (thesis, figure
        5.3).

        It receives the kind of feedback that it was trained on, for the last answer alone: the text stays
        short.

        Args:
            state: at the end of a list.
            cost: of what the list makes of the program, by the policy's objective; None where it failed.

        Returns:
            The state before the first pass of another list; None where the model says that it is sure, or
            the context is full.
        """
        assert isinstance(state, Text)
        said = [*state.written, self._end, *self._answered(state)]
        answer = read_answer(self._tokenizer, said)
        about = self._kind, self._saved.schema.name.rpartition("/")[2]
        found = feedback_in(state.page.space, state.candidate, answer, cost, *about)
        if self._kind == "fast":
            said.pop()  # the mark that ends the answer: the feedback comes in its place
        said += feedback_tokens(self._tokenizer, found, self._kind)
        # Room for the verdict's token, and for a list as long as lists may be.
        if state.page.asked.length + len(said) + 1 + self._saved.steps >= self._shape.context:
            return None
        memory = remembered(self._shape, self._saved.parameters, said, state.page.asked)
        sure, again = map(self._tokenizer.token, (SURE, RETRY))
        if memory.scores[sure] > memory.scores[again]:
            return None
        memory = remembered(self._shape, self._saved.parameters, [again], memory)
        return replace(state, candidate=Candidate(), written=(), memory=memory)

    def _answered(self, state: Text) -> list[int]:
        """Have the rest of an answer written: counts, and code where feedback has it."""
        memory = remembered(self._shape, self._saved.parameters, [self._end], state.memory)
        most = ROOM if self._kind == "fast" else None
        return continued(self._shape, self._saved.parameters, memory, self._ends, most)[0]

    def _next(self, state: Text) -> Mapping[Step | None, float]:
        page, legal = state.page, len(state.written) < self._saved.steps
        # A list has one pass at least, so that the end is not offered before.
        tokens = [*(page.steps if legal else ()), *([self._end] if state.written else [])]
        if not tokens:
            return {None: 0.0}
        kept: NDArray[np.float64] = state.memory.scores[tokens].astype(np.float64)
        sure = (kept - np.logaddexp.reduce(kept)).tolist()
        return {page.steps.get(token): value for token, value in zip(tokens, sure, strict=True)}
