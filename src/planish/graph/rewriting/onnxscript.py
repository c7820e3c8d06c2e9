"""The passes of onnxscript: its optimizer, its rewrite rules, and its fusions for ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnxscript import ir

Change = Callable[["ir.Model"], object]


def apply_onnxscript(model: ModelProto, name: str) -> ModelProto:
    """Apply a pass.

    Args:
        model: stays as it is.
        name: without the library's: "fold_constants".
    """
    from onnxscript import ir

    changed = ir.serde.deserialize_model(model)
    (_special().get(name) or _rule(name))(changed)
    return ir.serde.serialize_model(changed)


def rule_names() -> frozenset[str]:
    """Name the rewrite rules of the installed version, as the catalogue writes them."""
    from onnxscript.rewriter.rules import common

    return frozenset(name.removesuffix("_rules").removesuffix("_rule") for name in common.__all__)


def _rule(name: str) -> Change:
    """Find a rewrite rule, or set of rules, by its name; unused nodes are removed after it."""
    from onnxscript.rewriter import RewriteRuleSet, rewrite
    from onnxscript.rewriter.rules import common

    found: Any = getattr(common, f"{name}_rule", None) or getattr(common, f"{name}_rules")
    rules = found() if name == "fuse_hardswish" else found
    chosen = rules if isinstance(rules, RewriteRuleSet) else RewriteRuleSet([rules])
    return lambda model: rewrite(model, chosen)


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
    from onnxscript.rewriter import ort_fusions, rewrite
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
        "fuse_softmax": lambda model: rewrite(model, softmax.rules),
        "fuse_matmul": lambda model: rewrite(model, fused_matmul_rule_sets.fused_matmul_rule_sets()),
        "optimize_shapes": shape_optimization.rules.apply_to_model,
    }
