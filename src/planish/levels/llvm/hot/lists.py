"""Pass lists for hot functions: clang's -O3 in three parts, of which the second is exchanged.

`BEGIN` prepares the whole module, and inlines; then a list is run on each function, which is `USUAL` in -O3;
`LAST` ends the module.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from planish.core import ProgramError
from planish.levels.llvm.passes.pipeline import PipelineItem, read_items

Parts = tuple[str, ...]
"""Passes within a function manager."""

_SIMPLE = "simplifycfg<switch-range-to-icmp>"
_COMBINE = "instcombine<no-verify-fixpoint>"
_LICM = "loop-mssa(licm<allowspeculation>)"
_HOIST = (
    "loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate<header-duplication>,"
    "licm<allowspeculation>,simple-loop-unswitch<nontrivial;trivial>)"
)
_THOROUGH = (
    "simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-arithmetic;switch-to-lookup;no-keep-loops;"
    "hoist-common-insts;sink-common-insts>"
)
SIMPLIFY: Parts = (
    *("sroa<modify-cfg>", "early-cse<memssa>", "speculative-execution<only-if-divergent-target>"),
    *("jump-threading", "correlated-propagation", _SIMPLE, _COMBINE, "aggressive-instcombine"),
    *("libcalls-shrinkwrap", "tailcallelim", _SIMPLE, "reassociate", "constraint-elimination", _HOIST),
    *(_SIMPLE, _COMBINE),
    "loop(loop-idiom,indvars,extra-simple-loop-unswitch-passes,loop-deletion,loop-unroll-full)",
    *("sroa<modify-cfg>", "vector-combine", "mldst-motion<no-split-footer-bb>", "gvn", "sccp", "bdce"),
    *(_COMBINE, "jump-threading", "correlated-propagation", "adce", "memcpyopt", "dse"),
    *("move-auto-init", _LICM, "coro-elide"),
    "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;hoist-common-insts;sink-common-insts>",
    _COMBINE,
)
"""Passes that -O3 runs on each function while it inlines."""
_FIRST = "sroa<modify-cfg>,early-cse,callsite-splitting"
BEGIN = (
    "annotation2metadata,forceattrs,inferattrs,coro-early,"
    f"function<eager-inv>(lower-expect,simplifycfg,{_FIRST}),"
    "openmp-opt,ipsccp,called-value-propagation,globalopt,"
    f"function<eager-inv>(mem2reg,{_COMBINE},{_SIMPLE}),"
    "always-inline,require<globals-aa>,function(invalidate<aa>),require<profile-summary>,"
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,argpromotion,openmp-opt-cgscc,"
    f"function<eager-inv;no-rerun>({','.join(SIMPLIFY)}),"
    "function-attrs,function(require<should-not-run-function-passes>),coro-split,coro-annotation-elide)),"
    "deadargelim,coro-cleanup,globalopt,globaldce,elim-avail-extern,rpo-function-attrs,recompute-globalsaa"
)
"""Passes that -O3 runs on the module up to where loops become vectors."""
VECTORIZE, UNROLL, DISTRIBUTE, SLP = "loop-vectorize", "loop-unroll<O3>", "loop-distribute", "slp-vectorizer"
USUAL: Parts = (
    *("drop-unnecessary-assumes", "float2int", "lower-constant-intrinsics", "chr"),
    *("loop(loop-rotate<header-duplication>,loop-deletion)", DISTRIBUTE, "inject-tli-mappings", VECTORIZE),
    *("drop-unnecessary-assumes", "infer-alignment", "loop-load-elim", _COMBINE),
    *(_THOROUGH, SLP, "vector-combine", _COMBINE, UNROLL, "transform-warning", "sroa<preserve-cfg>"),
    *("infer-alignment", _COMBINE, _LICM, "alignment-from-assumptions", "loop-sink", "instsimplify"),
    *("div-rem-pairs", "tailcallelim"),
    "simplifycfg<switch-range-to-icmp;switch-to-arithmetic;speculate-unpredictables>",
)
"""Passes that -O3 then runs on each function."""
LAST = "globaldce,constmerge,cg-profile,rel-lookup-table-converter"

VERSIONS: Parts = ("loop-versioning", _LICM)
"""Two copies of a loop, of which one knows that its pointers are apart: that is asked before it begins."""
_CSE: Parts = ("early-cse<memssa>",)
_UNSWITCH: Parts = ("loop-mssa(simple-loop-unswitch<nontrivial;trivial>)",)
_GVN, _REASSOCIATE, _SINK = ("gvn",), ("reassociate",), ("sink",)
MORE: tuple[Parts, ...] = (
    *(VERSIONS, ("loop(loop-interchange)",), ("loop(loop-unroll-and-jam)",), ("loop-fusion",)),
    *(("loop(loop-flatten)",), _GVN, (DISTRIBUTE,), (SLP,), (UNROLL,), ("nary-reassociate", "slsr")),
    *(("loop(indvars)",), _UNSWITCH, _CSE, (_COMBINE,), ("jump-threading",), _REASSOCIATE),
    *(("loop-load-elim",), ("dse",), _SINK, (_LICM,)),
)
_DROPPED = (0.0, 0.05, 0.15)
_MOST_MORE = 3


def pipeline(parts: Parts) -> str:
    """Write passes as `opt -passes=` takes them."""
    return f"function<eager-inv>({','.join(parts)})"


def passes_within(text: str) -> Parts:
    """Read the passes within a function manager; `pipeline` is its inverse.

    Raises:
        ProgramError: it is none.
    """
    items = read_items(text)
    if len(items) != 1 or items[0].inner is None:
        raise ProgramError(f"expected passes within function(...), got '{text}'")
    return tuple(map(_text, items[0].inner))


def _text(item: PipelineItem) -> str:
    return item.text if item.inner is None else f"{item.text}({','.join(map(_text, item.inner))})"


def first_lists() -> Iterator[Parts]:
    """Yield what is worth trying on every hot function, in the order of `experiments/clock/choose.py`.

    It is a greedy cover of what gained on 16 hot functions of programs that are in no table of results.
    """
    yield (*USUAL, *_CSE)
    yield (*(less := without(USUAL, UNROLL)), *SIMPLIFY, *less)
    yield (*USUAL, *_UNSWITCH)
    yield before(USUAL, UNROLL, _REASSOCIATE)
    yield before(USUAL, DISTRIBUTE, _REASSOCIATE)
    yield before(USUAL, UNROLL, _GVN)
    yield without(USUAL, UNROLL)
    yield (*USUAL, *_REASSOCIATE)
    yield without(USUAL, SLP)
    yield before(USUAL, UNROLL, _SINK)
    yield before(USUAL, UNROLL, VERSIONS)
    yield without(USUAL, DISTRIBUTE)


def drawn(parts: Parts, rng: random.Random) -> Parts:
    """Leave out some passes of a list, and put others in."""
    share = rng.choice(_DROPPED)
    kept = [text for text in parts if rng.random() >= share]
    for _ in range(rng.randint(0 if share else 1, _MOST_MORE)):
        index = rng.randrange(len(kept) + 1)
        kept[index:index] = rng.choice(MORE)
    return tuple(kept)


def without(parts: Parts, text: str) -> Parts:
    """Leave a pass out."""
    return tuple(each for each in parts if each != text)


def before(parts: Parts, text: str, more: Sequence[str]) -> Parts:
    """Put passes before another one."""
    index = parts.index(text)
    return (*parts[:index], *more, *parts[index:])
