"""One function of a module as a module of its own, which is what compilers take."""

from __future__ import annotations

from planish.core import ProgramError, did_you_mean
from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.normal import FUNCTION
from planish.hlo.ir.printing import printed
from planish.hlo.ir.uids import functions, strip_uids


def entry_text(root: ir.Operation | ir.OpView, function: str) -> str:
    """Print a function as the `main` of a module that has no other, without ids.

    Args:
        root: a module, verified.
        function: the name of the function.

    Raises:
        ProgramError: there is no such function.
    """
    copy = root.operation.clone().operation
    known = dict(functions(copy))
    if function not in known:
        raise ProgramError(f"the module has no function '{function}'", did_you_mean(function, known))
    for name, other in known.items():
        if name != function:
            other.erase()
    known[function].attributes["sym_name"] = ir.StringAttr.get("main", context())
    # It names a function that is called main here.
    if FUNCTION in copy.attributes:
        del copy.attributes[FUNCTION]
    strip_uids(copy)
    return printed(copy)
