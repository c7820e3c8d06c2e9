"""Language model as a policy: it reads the text of a program and writes a list, a token at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planish.core import CanCompile, Candidate, PolicyState, Space, Step
from planish.models.decoder import ROOM, DecoderShape, Memory, continued, prompt_of, remembered
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
from planish.models.ir_text import ModelAnswer, Tokenizer, read_answer
from planish.models.policy_files import SavedPolicy

USUAL: Kind = "fast"
"""The feedback to a model that was trained without feedback, or before its kind was kept."""


COUNTED = "instructions"
"""The unit of all counts in text, whatever is made less."""


def feedback_in(
    space: CanCompile,
    candidate: Candidate,
    answer: ModelAnswer,
    cost: float | None,
    kind: Kind,
    objective: str,
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
    if after is not None and objective != COUNTED:
        after = space.instructions(candidate)
    if kind == "fast":
        return feedback_of(answer, space.text, after)
    made = None if after is None else space.compiled(candidate)
    error = "" if answer.code is None else space.refused(answer.code)
    alike = 0.0 if answer.code is None or made is None else bleu(answer.code, made)
    return feedback_of(answer, space.text, after, made, error_class(error) if error else "", alike)


@dataclass(frozen=True)
class Prompt:
    """Prompt of one program, shared by all answers.

    Args:
        space: of the program.
        memory: the key-value cache of the prompt.
        steps: of each token that is a pass and that the space has.
    """

    space: CanCompile
    memory: Memory
    steps: Mapping[int, Step]

    @cached_property
    def tokens(self) -> Mapping[Step, int]:
        """The token of each step."""
        return {step: token for token, step in self.steps.items()}


@dataclass(frozen=True, eq=False)
class AnswerState:
    """State of an answer after some passes of its list.

    Args:
        prompt: of its program.
        candidate: the passes so far.
        written: their tokens.
        memory: the key-value cache of the prompt and of these tokens.
    """

    prompt: Prompt
    candidate: Candidate
    written: tuple[int, ...]
    memory: Memory


class LanguageModelPolicy:
    """Writes lists as a language model answers; see `planish.models.ir_text`.

    Args:
        saved: the network, its vocabulary, and what it is for.
        answer: writes tokens; see `planish.models.decoder.continued`.
    """

    def __init__(
        self, saved: SavedPolicy, answer: Callable[..., tuple[Sequence[int], object]] = continued
    ) -> None:
        assert isinstance(saved.shape, DecoderShape)
        self._saved, self._shape, self._answer = saved, saved.shape, answer
        self._tokenizer = Tokenizer.read(saved.vocabulary)
        self._end = self._tokenizer.token("[end of list]")
        self._kind: Kind = saved.feedback or USUAL
        # For fast feedback the answer ends before its code, which is then not written.
        names = ("[code]", "[end]") if self._kind == "fast" else ("[end]",)
        self._ends = {self._tokenizer.token(name) for name in names}

    def begin(self, space: Space) -> AnswerState:
        """Read the program of a space; of a long one its beginning, with a `CutTextWarning`.

        Raises:
            PlanishError: the policy is for another space.
        """
        fitting = self._saved.require_fit(space, CanCompile, "reads programs as text")
        known = {str(step): step for step in fitting.actions}
        steps = {self._tokenizer.token(name): known[name] for name in self._tokenizer.passes if name in known}
        tokens = prompt_of(self._shape, self._tokenizer, fitting.text)
        memory = remembered(self._shape, self._saved.parameters, tokens)
        return AnswerState(Prompt(fitting, memory, steps), fitting.start(), (), memory)

    def extend(self, state: PolicyState, step: Step) -> AnswerState:
        """Write a step."""
        assert isinstance(state, AnswerState)
        token = state.prompt.tokens[step]
        memory = remembered(self._shape, self._saved.parameters, [token], state.memory)
        return AnswerState(state.prompt, state.candidate.then(step), (*state.written, token), memory)

    def log_probabilities(self, states: Sequence[PolicyState]) -> Sequence[Mapping[Step | None, float]]:
        """Share the probability among passes and the list's end: all other tokens are illegal."""
        return [self._next_steps(state) for state in states if isinstance(state, AnswerState)]

    def revise(self, state: PolicyState, cost: float | None) -> AnswerState | None:
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
        assert isinstance(state, AnswerState)
        # The rest of the answer: counts, and code where feedback has it.
        most = ROOM if self._kind == "fast" else None
        memory = remembered(self._shape, self._saved.parameters, [self._end], state.memory)
        rest, _ = self._answer(self._shape, self._saved.parameters, memory, self._ends, most)
        tokens = [*state.written, self._end, *rest]
        answer = read_answer(self._tokenizer, tokens)
        about = self._kind, self._saved.schema.name.rpartition("/")[2]
        found = feedback_in(state.prompt.space, state.candidate, answer, cost, *about)
        if self._kind == "fast":
            tokens.pop()  # the mark that ends the answer is replaced by the feedback
        tokens += feedback_tokens(self._tokenizer, found, self._kind)
        # Room for the verdict's token, and for a list as long as lists may be.
        if state.prompt.memory.length + len(tokens) + 1 + self._saved.steps >= self._shape.context:
            return None
        memory = remembered(self._shape, self._saved.parameters, tokens, state.prompt.memory)
        sure, again = map(self._tokenizer.token, (SURE, RETRY))
        if memory.scores[sure] > memory.scores[again]:
            return None
        memory = remembered(self._shape, self._saved.parameters, [again], memory)
        return replace(state, candidate=Candidate(), written=(), memory=memory)

    def _next_steps(self, state: AnswerState) -> Mapping[Step | None, float]:
        steps, legal = state.prompt.steps, len(state.written) < self._saved.steps
        # A list has one pass at least, so that the end is not offered before.
        tokens = [*(steps if legal else ()), *([self._end] if state.written else [])]
        if not tokens:
            return {None: 0.0}
        kept: NDArray[np.float64] = state.memory.scores[tokens].astype(np.float64)
        log_probs = (kept - np.logaddexp.reduce(kept)).tolist()
        return {steps.get(token): value for token, value in zip(tokens, log_probs, strict=True)}
