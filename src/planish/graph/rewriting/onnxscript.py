"""The passes of onnxscript: its optimizer, its rewrite rules, and its fusions for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxscript import ir
    from onnxscript.rewriter import RewriteRuleSet

Change = Callable[["ir.Model"], object]
"""Changes a model; what it gives tells whether it did, as `_is_unchanged` reads it."""


def apply_onnxscript(model: ModelProto, name: str) -> ModelProto:
    """Apply a pass.

    Args:
        model: stays as it is.
        name: without the library's: "fold_constants".

    Returns:
        A new model; the one that was given, where the pass tells that it changed nothing.
    """
    from onnxscript import ir

    special = _special().get(name)
    changed = _Opened.take(model) if special is None else ir.serde.deserialize_model(model)
    told = (special or _rule(name))(changed)
    if not _is_unchanged(told):
        return ir.serde.serialize_model(changed)
    if special is None:
        _Opened.last = (model, changed)
    return model


class _Opened:
    """The model that a rule was tried on last and in vain; to open one takes longer than to try a rule."""

    last: ClassVar[tuple[ModelProto, ir.Model] | None] = None

    @classmethod
    def take(cls, model: ModelProto) -> ir.Model:
        """Give a model, opened; nobody else has it any more."""
        from onnxscript import ir

        last, cls.last = cls.last, None
        return last[1] if last is not None and last[0] is model else ir.serde.deserialize_model(model)


def _is_unchanged(told: object) -> bool:
    """Whether a pass tells that it changed nothing: by a count of 0, or by its result."""
    return told == 0 if isinstance(told, int) else getattr(told, "modified", None) is False


def _rule(name: str) -> Change:
    """Find a rewrite rule, or set of rules, by its name."""
    from onnxscript.rewriter import RewriteRuleSet
    from onnxscript.rewriter.rules import common

    found: Any = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    # The library exports this one as what makes it.
    rules = found() if name == "fuse_hardswish" else found
    return _tidied(rules if isinstance(rules, RewriteRuleSet) else RewriteRuleSet([rules]))


def _tidied(rules: RewriteRuleSet) -> Change:
    """Apply rules, then remove the nodes that are not used any more; the change gives their count."""
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    def change(model: ir.Model) -> int:
        count = rules.apply_to_model(model)
        if count:
            RemoveUnusedNodesPass()(model)
        return count

    return change


@cache
def _special() -> Mapping[str, Change]:
    """Give all that is no rewrite rule."""
    import onnx_ir.passes.common as common
    from onnxscript import optimizer

    return {
        "fold_constants": optimizer.fold_constants_ir,
        "inline": common.InlinePass(),
        "optimize": optimizer.optimize_ir,
        "eliminate_common_subexpressions": common.CommonSubexpressionEliminationPass(),
        "eliminate_identity": common.IdentityEliminationPass(),
        "deduplicate_initializers": common.DeduplicateInitializersPass(),
        "lift_constants": common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        "lift_subgraph_initializers": common.LiftSubgraphInitializersToMainGraphPass(),
        "remove_unused_nodes": common.RemoveUnusedNodesPass(),
        "remove_unused_functions": common.RemoveUnusedFunctionsPass(),
        **_fusions(),
    }


def _fusions() -> Mapping[str, Change]:
    from onnxscript.rewriter import ort_fusions
    from onnxscript.rewriter.ort_fusions import (
        _core,
        bias_gelu,
        erfgelu,
        fused_matmul_rule_sets,
        gelu,
        rms_normalization,
        shape_optimization,
        skip_normalization,
        softmax,
    )

    return {
        "optimize_for_ort": ort_fusions.optimize_for_ort,
        "fuse_transformers": _core.fuse_xformers,
        "fuse_erf_gelu": erfgelu.fuse_erfgelu,
        "fuse_gelu": gelu.fuse_gelu,
        "fuse_bias_gelu": bias_gelu.fuse_bias_gelu,
        "fuse_rms_normalization": rms_normalization.fuse_rms_normalization,
        "fuse_skip_layer_normalization": skip_normalization.fuse_skip_layer_normalization,
        "fuse_skip_rms_normalization": skip_normalization.fuse_skip_rms_normalization,
        "fuse_softmax": _tidied(softmax.rules),
        "fuse_matmul": _tidied(fused_matmul_rule_sets.fused_matmul_rule_sets()),
        "optimize_shapes": _tidied(shape_optimization.rules),
    }
