"""What a language model is asked, and what it answers (figures 4.1, 4.2 and 4.20 of the thesis).

    [ask] IR [run] passes [end of list] [from] N [to] M [code] optimised IR [end]

The answer begins after `[run]`. Each auxiliary task, the counts and the code, can be left out (4.5.2). Fixed
sentences of the thesis are one token each here, since they say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planish.learn.language.lexer import lexemes
from planish.learn.language.tokenizer import Tokenizer

_ANSWER = re.compile(
    r"(?P<passes>.*?)\[end of list\](?: ?\[from\](?P<before>[^\[]*))?(?: ?\[to\](?P<after>[^\[]*))?"
    r"(?:\s*\[code\]\s*(?P<code>.*?))?\s*(?:\[end\].*)?",
    re.DOTALL,
)


@dataclass(frozen=True)
class Answer:
    """What is answered, or to be.

    Args:
        passes: the list.
        before: instructions of the program as it is; None where that was not asked for, or is no number.
        after: instructions of what the list makes of it.
        code: what the list makes of it; None where that was not asked for.
    """

    passes: tuple[str, ...]
    before: int | None = None
    after: int | None = None
    code: str | None = None


@dataclass(frozen=True)
class Tasks:
    """What is asked beside the list.

    Args:
        counts: instructions before and after.
        code: the optimised IR.
    """

    counts: bool = True
    code: bool = True


ALL = Tasks()


def question(tokenizer: Tokenizer, ir: str) -> list[int]:
    """Give the tokens of a prompt (figure 4.2)."""
    return tokenizer.encode_parts(["[ask]", *lexemes(ir), "[run]"])


def answer_tokens(tokenizer: Tokenizer, answer: Answer, tasks: Tasks = ALL) -> list[int]:
    """Give the tokens of an answer (figure 4.1).

    Args:
        tokenizer: of the model.
        answer: what it lacks of what the tasks ask for is left blank.
        tasks: what is asked beside the list.
    """
    parts = [*answer.passes, "[end of list]"]
    if tasks.counts:
        parts += ["[from]", *digits(answer.before), "[to]", *digits(answer.after)]
    if tasks.code:
        parts += ["[code]", *lexemes(answer.code or "")]
    return tokenizer.encode_parts([*parts, "[end]"])


def read_answer(tokenizer: Tokenizer, tokens: Sequence[int]) -> Answer:
    """Read what a model has answered; what is malformed is None, and passes that are none are left out."""
    found = _ANSWER.fullmatch(tokenizer.decode(tokens))
    end, numbers = (
        tokenizer.token("[end of list]"),
        {tokenizer.token(name): name for name in tokenizer.passes},
    )
    # Of an answer that was cut off the passes count all the same.
    listed = tokens[: tokens.index(end)] if end in tokens else tokens
    passes = tuple(numbers[token] for token in listed if token in numbers)
    if found is None:
        return Answer(passes)
    return Answer(passes, _number(found["before"]), _number(found["after"]), found["code"])


def translation(tokenizer: Tokenizer, ir: str, name: str) -> list[int]:
    """Give the tokens of a prompt that asks for what one pass makes of IR (figure 4.20)."""
    return tokenizer.encode_parts(["[pass]", name, *lexemes(ir), "[code]"])


def translated(tokenizer: Tokenizer, ir: str) -> list[int]:
    """Give the tokens of the answer to `translation`."""
    return tokenizer.encode_parts([*lexemes(ir), "[end]"])


def digits(number: int | None) -> list[str]:
    """Write a number as lexemes: none where it is not known."""
    return [] if number is None else [str(number)]


def _number(text: str | None) -> int | None:
    stripped = (text or "").replace(" ", "").strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None
