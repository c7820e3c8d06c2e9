"""Feedback of a compiler to a language model (thesis chapter 5, figure 5.4), and the quality of its code.

    prompt, answer, [feedback] [valid] [from] predicted, compiled [to] predicted, compiled ... [try]
    I am sure!  or  Let me try again.  and an answer as before

"(G)" is counted in the code that the model wrote, "(C)" in the code that the compiler makes of its list. The
feedback comes after all other input, so that one model learns to answer with it and without it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from planish.models.ir_text import ModelAnswer, Tokenizer, count_instructions, digits, lexemes

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
    """Return whether two modules are the same, lexeme by lexeme: the thesis's exact match, spaces apart."""
    return lexemes(written) == lexemes(wanted)


def error_class(message: str) -> str:
    """Classify LLVM's message on code that it cannot read (figure 4.11); "other" where no class fits."""
    found = (name for name, pattern in _CLASSES if re.search(pattern, message))
    return next(found, "other")


def _shared(mine: Sequence[str], theirs: Sequence[str], length: int) -> float:
    """Return the share of sequences that are in the other text, too, each as often as it is there."""
    ours, others = (
        Counter(tuple(parts[at : at + length]) for at in range(len(parts) - length + 1))
        for parts in (mine, theirs)
    )
    # Clipped counts, as BLEU has them: a text that repeats one right word is not all right.
    return (ours & others).total() / ours.total()


Kind = Literal["short", "long", "fast"]
KINDS: tuple[Kind, ...] = ("short", "long", "fast")
SURE, RETRY = "I am sure!", "Let me try again."


@dataclass(frozen=True)
class Feedback:
    """Feedback on an answer whose list was compiled.

    Args:
        valid: whether the list could be run.
        before: instructions of the program.
        predicted_before: what the model said of them.
        after: instructions of what the list makes of it (C); None where it could not be run.
        predicted_after: what the model said of them.
        generated: instructions of the code that the model wrote (G).
        error: what the compiler says of that code, by its class; "" where it can be read.
        bleu: of the code that the model wrote, beside what the list makes of it.
        compiled: what the list makes of the program.
    """

    valid: bool
    before: int
    predicted_before: int | None
    after: int | None
    predicted_after: int | None
    generated: int | None = None
    error: str = ""
    bleu: float | None = None
    compiled: str | None = None

    @property
    def sure(self) -> bool:
        """Return whether the model predicted its list's effect; it is then mostly as good as the labels
        (5.2)."""
        return self.valid and self.after is not None and self.after == self.predicted_after

    @property
    def metrics(self) -> Mapping[str, float]:
        """Return the values that are known without labels, by the names of figure 5.1."""
        after, claimed = self.after, self.predicted_after
        found = {
            "valid(C)": float(self.valid),
            "src_inst_cnt(C)": self.before,
            "src_inst_cnt(G)": self.predicted_before,
            "src_inst_cnt_error(G)": _error(self.before, self.predicted_before),
            "tgt_inst_cnt(C)": after,
            "tgt_inst_cnt(G)": claimed,
            "tgt_inst_cnt_error(C)": _error(after, claimed),
            "tgt_inst_cnt_error(G)": _error(self.generated, claimed),
            "tgt_IR_BLEU(C)": self.bleu,
        }
        return {name: float(value) for name, value in found.items() if value is not None}


def feedback_of(
    answer: ModelAnswer,
    ir: str,
    after: int | None,
    compiled: str | None = None,
    error: str = "",
    bleu: float = 0.0,
) -> Feedback:
    """Put together what is known of an answer.

    Args:
        answer: the model's.
        ir: the program.
        after: instructions of what the list makes of it; None where it could not be run.
        compiled: what that is; None where only fast feedback is asked for.
        error: of the code that the model wrote, by its class.
        bleu: of that code.
    """
    wrote = answer.code is not None and compiled is not None
    return Feedback(
        after is not None,
        count_instructions(ir),
        answer.before,
        after,
        answer.after,
        count_instructions(answer.code or "") if wrote else None,
        error if wrote else "",
        bleu if wrote else None,
        compiled,
    )


def feedback_tokens(tokenizer: Tokenizer, feedback: Feedback, kind: Kind) -> list[int]:
    """Return the tokens between an answer and what the model writes next (figure 5.4).

    Args:
        tokenizer: of the model.
        feedback: of the answer.
        kind: "fast" has the list's validity and counts; "short" also what is known of the code that the
            model wrote; "long" also what the compiler makes of the list.
    """
    parts = ["[feedback]", "[valid]" if feedback.valid else "[invalid]"]
    parts += ["[from]", "[predicted]", *digits(feedback.predicted_before)]
    parts += ["[compiled]", *digits(feedback.before)]
    parts += ["[to]", "[predicted]", *digits(feedback.predicted_after)]
    parts += ["[compiled]", *digits(feedback.after)]
    if kind != "fast":
        parts += ["[generated]", *digits(feedback.generated)]
        parts += ["[error]", *lexemes(feedback.error)] if feedback.error else ["[compiles]"]
        parts += ["[bleu]", *digits(None if feedback.bleu is None else round(100 * feedback.bleu))]
    if kind == "long":
        parts += ["[code]", *lexemes(feedback.compiled or "")]
    return tokenizer.encode_parts([*parts, "[try]"])


def verdict_token(tokenizer: Tokenizer, *, sure: bool) -> int:
    """Return the first token of the verdict that is expected after a feedback."""
    return tokenizer.token(SURE if sure else RETRY)


def _error(true: int | None, claimed: int | None) -> int | None:
    return None if true is None or claimed is None else abs(true - claimed)
