"""Textual pipelines, as far as llvmlite's public interface can express them."""

from __future__ import annotations

import re

from planish.llvm.backend.protocol import PassError

_FUNCTION = {
    "adce": "aggressive_dce",
    "aggressive-instcombine": "aggressive_instcombine",
    "break-crit-edges": "break_critical_edges",
    "dce": "dead_code_elimination",
    "dse": "dead_store_elimination",
    "instcombine<no-verify-fixpoint>": "instruction_combine",
    "instnamer": "instruction_namer",
    "jump-threading": "jump_threading",
    "lcssa": "lcssa",
    "loop-simplify": "loop_simplify",
    "loop-unroll": "loop_unroll",
    "loop-unroll<O2>": "loop_unroll",
    "lower-atomic": "lower_atomic",
    "lower-invoke": "lower_invoke",
    "lower-switch": "lower_switch",
    "memcpyopt": "mem_copy_opt",
    "mergereturn": "unify_function_exit_nodes",
    "newgvn": "new_gvn",
    "reassociate": "reassociate",
    "reg2mem": "register_to_memory",
    "sccp": "sccp",
    "simplifycfg": "simplify_cfg",
    "sink": "sinking",
    "sroa<preserve-cfg>": "sroa",
    "tailcallelim": "tail_call_elimination",
}
_LOOP = {
    "loop-deletion": "loop_deletion",
    "loop-reduce": "loop_strength_reduce",
    "loop-rotate": "loop_rotate",
    "loop-rotate<header-duplication>": "loop_rotate",
    "loop-unroll-and-jam": "loop_unroll_and_jam",
}
_CGSCC = {
    "argpromotion": "argument_promotion",
    "function-attrs": "post_order_function_attributes",
}
_MODULE = {
    "always-inline": "always_inliner",
    "constmerge": "constant_merge",
    "deadargelim": "dead_arg_elimination",
    "globaldce": "global_dead_code_eliminate",
    "globalopt": "global_opt",
    "internalize": "internalize",
    "ipsccp": "ipsccp",
    "loop-extract": "loop_extract",
    "mergefunc": "merge_functions",
    "partial-inliner": "partial_inliner",
    "rpo-function-attrs": "rpo_function_attrs",
    "strip": "strip_symbols",
    "strip-dead-debug-info": "strip_dead_debug_info",
    "strip-dead-prototypes": "strip_dead_prototype",
    "strip-debug-declare": "strip_debug_declare",
    "strip-nondebug": "strip_non_debug_symbols",
}
_PASSES = {
    **_MODULE,
    **{f"cgscc({name})": method for name, method in _CGSCC.items()},
    **{f"function({name})": method for name, method in _FUNCTION.items()},
    **{f"function(loop({name}))": method for name, method in _LOOP.items()},
}
# Os and Oz are O2 on functions that say optsize and minsize: so LLVM 23 has it, which drops their pipelines.
_LEVELS = {
    "default<O0>": 0,
    "default<O1>": 1,
    "default<O2>": 2,
    "default<O3>": 3,
    "default<Os>": 2,
    "default<Oz>": 2,
}

Element = int | str
"""A level of optimisation, or what stands between `add_` and `_pass` in llvmlite's method."""


def elements(pipeline: str) -> list[Element]:
    """Read a pipeline.

    Raises:
        PassError: llvmlite's public interface cannot express an element.
    """
    return [_element(text) for text in flatten(pipeline)]


def _element(text: str) -> Element:
    if text in _LEVELS:
        return _LEVELS[text]
    if text in _PASSES:
        return _PASSES[text]
    raise PassError(
        f"llvmlite's public interface cannot run '{text}'",
        "Install LLVM's shared library (Debian: apt-get install libllvm22), or llvmlite 0.50.",
    )


def flatten(pipeline: str) -> list[str]:
    """Write a pipeline as elements of one pass each: `function(a,b)` becomes `function(a)` and `function(b)`.

    A function pass sees its own function only, so to run each over the whole module gives the same code. With
    passes that share a manager of loops or of cgscc it would not: they stay one element.
    """
    flat: list[str] = []
    for part in _split(pipeline):
        manager = re.fullmatch(r"(module|function)\((.*)\)", part)
        if manager is None:
            flat.append(part)
        elif manager[1] == "module":
            flat += flatten(manager[2])
        else:
            flat += [f"function({item})" for item in flatten(manager[2])]
    return flat


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        # Options have commas of their own, in angle brackets.
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in (p.strip() for p in parts) if part]
