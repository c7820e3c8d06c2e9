"""What a compiler tells a model of its answer, for a second chance (thesis chapter 5, figure 5.4).

    prompt, answer, [feedback] [valid] [from] predicted, compiled [to] predicted, compiled ... [try]
    I am sure!  or  Let me try again.  and an answer as before

"(G)" is counted in the code that the model wrote, "(C)" in what the compiler makes of its list. A feedback
comes after all that the model knew, so that one model learns to answer without one, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planish.learn.language.lexer import count_instructions, lexemes
from planish.learn.language.prompts import Answer, digits
from planish.learn.language.tokenizer import Tokenizer

Kind = Literal["short", "long", "fast"]
KINDS: tuple[Kind, ...] = ("short", "long", "fast")
SURE, RETRY = "I am sure!", "Let me try again."


@dataclass(frozen=True)
class Feedback:
    """What is known of an answer once its list was compiled.

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
        """Whether the model foresaw what its list does; it is then as good as the labels, mostly (5.2)."""
        return self.valid and self.after is not None and self.after == self.predicted_after

    @property
    def metrics(self) -> Mapping[str, float]:
        """What is known without labels, by the names of figure 5.1; what is missing is left out."""
        after, told = self.after, self.predicted_after
        found = {
            "valid(C)": float(self.valid),
            "src_inst_cnt(C)": self.before,
            "src_inst_cnt(G)": self.predicted_before,
            "src_inst_cnt_error(G)": _error(self.before, self.predicted_before),
            "tgt_inst_cnt(C)": after,
            "tgt_inst_cnt(G)": told,
            "tgt_inst_cnt_error(C)": _error(after, told),
            "tgt_inst_cnt_error(G)": _error(self.generated, told),
            "tgt_IR_BLEU(C)": self.bleu,
        }
        return {name: float(value) for name, value in found.items() if value is not None}


def feedback_of(
    answer: Answer,
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
        compiled: what that is; None where nobody asks for more than fast feedback.
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
    """Give the tokens that come after an answer, up to where the model goes on (figure 5.4).

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
    """Give the first token of what is expected after a feedback."""
    return tokenizer.token(SURE if sure else RETRY)


def _error(true: int | None, told: int | None) -> int | None:
    return None if true is None or told is None else abs(true - told)
