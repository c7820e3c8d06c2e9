"""Pass lists for one function within a module whose other functions stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from planish.llvm.passes import find_element, load_coreset, vary

_SINK = (
    "simplifycfg<sink-common-insts;hoist-common-insts;forward-switch-cond;switch-range-to-icmp;"
    "switch-to-arithmetic;no-keep-loops>"
)
_COMBINE = "instcombine<no-verify-fixpoint>"
_OPTIMISED = (
    "function-simplification<Oz>",
    "float2int",
    "lower-constant-intrinsics",
    "loop-rotate<no-header-duplication>",
    "loop-deletion",
    "infer-alignment",
    "loop-load-elim",
    _COMBINE,
    _SINK,
    "vector-combine",
    _COMBINE,
    "sroa<preserve-cfg>",
    _COMBINE,
    "licm<allowspeculation>",
    "loop-sink",
    "instsimplify",
    "div-rem-pairs",
    "tailcallelim",
    "simplifycfg",
)
"""What -Oz runs on each function."""


def function_lists(objective: str) -> tuple[tuple[str, ...], ...]:
    """Give the coreset's lists, the most useful first, as they can be run on one function of a module.

    Passes of modules and of call graphs change more than one function: they go. LLVM's own pipelines become
    what they run on functions. Lists whose code may differ from run to run are left out: nobody could
    repeat them.
    """
    steady = (passes for passes in load_coreset(objective) if not vary(passes))
    return tuple(dict.fromkeys(map(_on_function, steady)))


def _on_function(passes: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for text in passes:
        element = find_element(text)
        if element.name == "default":
            kept += _OPTIMISED
        elif element.nesting not in ("module", "cgscc"):
            kept.append(text)
    return tuple(kept)
