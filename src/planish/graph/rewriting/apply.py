"""One pass after another, whichever library it is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from planish.core import PlanishError
from planish.graph.passes import find_pass

if TYPE_CHECKING:
    from onnx import ModelProto

    from planish.graph.running import Feed


class RewriteError(PlanishError):
    """A pass failed, or what it made is no model with the same inputs and outputs."""

    exit_code = 3


def rewrite(model: ModelProto, names: Iterable[str]) -> ModelProto:
    """Apply passes in their order; the model that is given stays as it is.

    Raises:
        RewriteError: a pass fails.
    """
    for name in names:
        model = apply_pass(model, name)
    return model


def apply_pass(model: ModelProto, name: str, feeds: Sequence[Feed] = ()) -> ModelProto:
    """Apply one pass; gives a new model.

    Args:
        model: stays as it is.
        name: of the pass.
        feeds: inputs of the model, for the passes of `NEEDS_INPUTS`.

    Raises:
        RewriteError: it fails, or changes the names of inputs or outputs.
    """
    try:
        made = _applied(model, name, feeds)
    except Exception as error:
        raise RewriteError(f"{name} fails: {type(error).__name__}: {error}".splitlines()[0]) from error
    # By other names the user's own calls would fail.
    if _interface(made) != _interface(model):
        raise RewriteError(f"{name} changes the model's inputs or outputs")
    return made


def _applied(model: ModelProto, name: str, feeds: Sequence[Feed]) -> ModelProto:
    """Call the pass's own library; each is imported when it is first needed."""
    kind, own = find_pass(name).kind, name.partition(".")[2]
    if kind == "onnxoptimizer":
        return _by_onnxoptimizer(model, own)
    if kind == "onnxscript":
        from planish.graph.rewriting.onnxscript import apply_onnxscript

        return apply_onnxscript(model, own)
    if kind == "planish":
        from planish.graph.rewriting.parallel import PASSES, join

        return join(model, PASSES[own])
    from planish.graph.rewriting.intent import apply_intent

    return apply_intent(model, own, feeds)


def _by_onnxoptimizer(model: ModelProto, name: str) -> ModelProto:
    """Call the compiled function: the one around it tries again by files, which it leaves behind."""
    from onnx import ModelProto

    compiled = import_module("onnxoptimizer.onnx_opt_cpp2py_export")
    return ModelProto.FromString(compiled.optimize(model.SerializeToString(), [name]))


def _interface(model: ModelProto) -> tuple[list[str], list[str]]:
    # Old models list weights among their inputs; passes may drop them there.
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = sorted(value.name for value in model.graph.input if value.name not in weights)
    return inputs, [value.name for value in model.graph.output]
