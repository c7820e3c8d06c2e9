"""The normal form of a module: calls inlined, no attributes of other tools, layers' names as locations."""

from __future__ import annotations

from planish.core import ProgramError, did_you_mean
from planish.hlo.ir.inlining import inline_calls
from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.parsing import parse
from planish.hlo.ir.uids import functions, strip_uids, walk

FUNCTION = "planish.function"
"""The module's attribute that names the function to evolve, where that is not `main`."""

_FOREIGN = ("arg_attrs", "res_attrs")


def load(source: str | bytes, function: str = "", name: str = "the module") -> ir.Operation:
    """Read a module into its normal form.

    Private functions are inlined. Attributes of arguments and results go (sharding, aliasing). Of locations
    only names stay: they tell the layer of an operation, and the name of an argument.

    Args:
        source: text, MLIR bytecode, or a StableHLO portable artifact.
        function: what is evolved; empty for the one that the module names, else `main`.
        name: what messages call the module.

    Raises:
        ProgramError: as `parse` does, or the function is missing, or one calls itself.
    """
    root = parse(source, name).operation.clone().operation
    chosen = function or chosen_function(root)
    known = dict(functions(root))
    if chosen not in known:
        raise ProgramError(f"{name} has no function '{chosen}'", did_you_mean(chosen, known))
    if not len(known[chosen].regions[0].blocks):
        raise ProgramError(f"function '{chosen}' of {name} has no body", "Give the whole module.")
    if "sym_visibility" in known[chosen].attributes:
        # Else it would be dropped with the private functions once all is inlined.
        known[chosen].attributes["sym_visibility"] = ir.StringAttr.get("public", context())
    inline_calls(root, name)
    _clean(root)
    if chosen != "main":
        root.attributes[FUNCTION] = ir.StringAttr.get(chosen, context())
    elif FUNCTION in root.attributes:
        del root.attributes[FUNCTION]
    return root


def chosen_function(root: ir.Operation | ir.OpView) -> str:
    """Give the name of the function that a module says is to be evolved."""
    named = root.attributes.get(FUNCTION)
    return named.value if isinstance(named, ir.StringAttr) else "main"


def normal_text(root: ir.Operation | ir.OpView) -> str:
    """Print a module in normal form with the names of its layers; `load` reads it back."""
    text = root.operation.get_asm(enable_debug_info=True)
    assert isinstance(text, str)
    return text


def named_location(location: ir.Location) -> str:
    """Give a location's name, of an inlined operation else its call's; empty where it has none."""
    if isinstance(location, ir.NameLoc):
        return location.name_str or named_location(location.child_loc)
    if isinstance(location, ir.CallSiteLoc):
        return named_location(location.callee) or named_location(location.caller)
    return ""


def _clean(root: ir.Operation) -> None:
    strip_uids(root)
    for op in walk(root):
        op.location = _only_name(op.location)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    argument.set_location(_only_name(argument.location))
    for _, function in functions(root):
        for foreign in _FOREIGN:
            if foreign in function.attributes:
                del function.attributes[foreign]


def _only_name(location: ir.Location) -> ir.Location:
    name = named_location(location)
    return ir.Location.name(name, context=context()) if name else ir.Location.unknown(context())
