"""How good code is that a model wrote (thesis 4.3.4 and 4.4.3): pure functions of texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from planish.learn.language.lexer import lexemes

LONGEST = 4
"""Lexemes of the longest sequences that BLEU compares."""
_CLASSES = (
    ("instruction forward referenced", r"forward referenced|does not dominate"),
    ("undefined function", r"use of undefined value '@"),
    ("undefined value", r"use of undefined"),
    ("invalid redefinition", r"redefinition|expected to be numbered"),
    ("index error", r"\bindex\b|indices"),
    ("invalid value for constant", r"floating point constant|integer constant|duplicate case value"),
    ("type error", r"\btypes?\b"),
    ("syntax error", r"\bexpected\b|end of file"),
)
"""Figure 4.11's classes, from what LLVM says; the first that fits."""


def bleu(written: str, wanted: str) -> float:
    """Score how alike two modules are, by sequences of one to four lexemes (BLEU, Papineni et al. 2002).

    One is the same for the same text alone; sequences longer than a text do not count against it.

    Args:
        written: by a model.
        wanted: by the compiler.
    """
    mine, theirs = lexemes(written), lexemes(wanted)
    if not mine or not theirs:
        return float(mine == theirs)
    longest = min(LONGEST, len(mine), len(theirs))
    shares = [_shared(mine, theirs, length) for length in range(1, longest + 1)]
    # No shared sequence of one length makes the geometric mean 0; its logarithm would be an error.
    if not all(shares):
        return 0.0
    # BLEU is a precision: without this, a few sure words would score best.
    brevity = min(0.0, 1 - len(theirs) / len(mine))
    return math.exp(brevity + sum(map(math.log, shares)) / longest)


def same_code(written: str, wanted: str) -> bool:
    """Whether two modules are the same, lexeme by lexeme: the thesis's exact match, spaces apart."""
    return lexemes(written) == lexemes(wanted)


def error_class(message: str) -> str:
    """Give the class of what LLVM says of code that it cannot read (figure 4.11); "other" where none fits."""
    found = (name for name, pattern in _CLASSES if re.search(pattern, message))
    return next(found, "other")


def perplexity(log_probabilities: Sequence[float]) -> float:
    """Give e to the power of the mean surprise of a text's tokens.

    Args:
        log_probabilities: of each token after those before it; at least one.
    """
    return math.exp(-sum(log_probabilities) / len(log_probabilities))


def _shared(mine: Sequence[str], theirs: Sequence[str], length: int) -> float:
    """Give the share of sequences that are in the other text, too, each as often as it is there."""
    ours, others = (
        Counter(tuple(parts[at : at + length]) for at in range(len(parts) - length + 1))
        for parts in (mine, theirs)
    )
    # Clipped counts, as BLEU has them: a text that repeats one right word is not all right.
    return (ours & others).total() / ours.total()
