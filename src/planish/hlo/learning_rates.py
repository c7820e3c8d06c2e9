"""The learning rate of a step of training: the constant by which its updates are multiplied.

GEVO-ML's edit that makes training better has larger gradients; a larger learning rate does the same, as the
paper shows (section 6.2). To find it by chance takes one edit for each parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planish.hlo.edits import Draft, Edit, ScaleConstant

FACTORS = (3.0, 10.0, 30.0)
"""By which all learning rates are multiplied; the paper's by hand is 30."""

_UPDATES = ("stablehlo.subtract", "stablehlo.add")
_FORMS = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.convert", "stablehlo.negate")


def larger_steps(draft: Draft) -> Iterator[Sequence[Edit]]:
    """List patches that multiply the learning rate of all parameters alike; none where nothing is trained."""
    rates = learning_rates(draft)
    if rates:
        yield from ([ScaleConstant(uid, factor) for uid in rates] for factor in FACTORS)


def learning_rates(draft: Draft) -> list[str]:
    """Find the constants in `parameter - constant * update`, for each result that is so made.

    Args:
        draft: a module; the update may be divided afterwards, as Adam's is.
    """
    end = draft.mirror.blocks[""][-1]
    steps = (_step(draft, value) for value in _operands(draft, end))
    rates = (_rate(draft, step) for step in steps if step)
    return list(dict.fromkeys(filter(None, rates)))


def _step(draft: Draft, value: str) -> str:
    """Name by what a result differs from a parameter; empty for what is no update."""
    operands = _operands(draft, value) if _made_by(draft, value) in _UPDATES else []
    others = [each for each in operands if not each.startswith("arg")]
    # One argument and one computed value: a sum of two parameters is no update, nor is one of two updates.
    return others[0] if len(operands) - len(others) == 1 else ""


def _rate(draft: Draft, value: str) -> str:
    """Find the constant that a value is multiplied by; empty where there is none."""
    made = _made_by(draft, value)
    if made in _FORMS or made == "stablehlo.divide":
        # The numerator alone: a constant below the line, such as Adam's epsilon, is no learning rate.
        return _rate(draft, _operands(draft, value)[0])
    if made != "stablehlo.multiply":
        return ""
    factors = _operands(draft, value)
    constants = (_constant(draft, each) for each in factors)
    return next(filter(None, constants), "") or next(filter(None, (_rate(draft, f) for f in factors)), "")


def _constant(draft: Draft, value: str) -> str:
    """Give the constant that a value is, in another form perhaps; empty where it is none."""
    while _made_by(draft, value) in _FORMS:
        value = _operands(draft, value)[0]
    return value.partition("#")[0] if _made_by(draft, value) == "stablehlo.constant" else ""


def _made_by(draft: Draft, value: str) -> str:
    fact = draft.mirror.facts.get(value.partition("#")[0])
    return fact.name if fact else ""


def _operands(draft: Draft, value: str) -> list[str]:
    return [draft.name(each) for each in draft.op(value.partition("#")[0]).operands]
