"""What is run on the whole module, before lists are run on single functions and after."""

from __future__ import annotations

from planish.llvm.backend import Backend

OZ = "default<Oz>"
LAST = "globaldce,constmerge,cg-profile,rel-lookup-table-converter,strip-dead-prototypes"

_TIDY = "sroa<modify-cfg>,early-cse<memssa>,simplifycfg<switch-range-to-icmp>,instcombine<no-verify-fixpoint>"
_LOOSE = (
    "annotation2metadata,forceattrs,inferattrs,coro-early,"
    "function<eager-inv>(lower-expect,simplifycfg,sroa<modify-cfg>,early-cse),"
    "openmp-opt,ipsccp,called-value-propagation,globalopt,"
    "function<eager-inv>(mem2reg,instcombine<no-verify-fixpoint>,simplifycfg<switch-range-to-icmp>),"
    "always-inline,require<globals-aa>,function(invalidate<aa>),require<profile-summary>,"
    "cgscc(devirt<4>(inline,function-attrs<skip-non-recursive-function-attrs>,"
    f"function<eager-inv;no-rerun>({_TIDY},coro-elide),function-attrs,coro-split,coro-annotation-elide)),"
    "deadargelim,coro-cleanup,globalopt,globaldce,elim-avail-extern,rpo-function-attrs,recompute-globalsaa"
)


def loose_start(backend: Backend) -> str:
    """Give what makes the module whose functions lists are then run on.

    It is what -Oz does for the whole module, in its order: constants across functions, inlining, dead
    arguments. But functions are only tidied up meanwhile, where -Oz simplifies them thoroughly: lists that
    begin after -Oz find little that is left to choose. An LLVM that refuses this has -Oz itself.
    """
    return _LOOSE if backend.runs(_LOOSE) else OZ
