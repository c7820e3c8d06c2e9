"""Normal form of a module: calls inlined, attributes of other tools dropped, names of layers as locations.

A module in normal form is one list of operations for each function. Here are also the names of its arguments,
its canonical hash, the operations that its results need, and one function of it as a module of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from jaxlib.mlir import passmanager
from jaxlib.mlir._mlir_libs._jax_mlir_ext import inlined_func_call

from planish.core import ProgramError, content_hash, did_you_mean
from planish.levels.hlo.ir.mlir import context, functions, ir, printed, strip_uids, uid_of, walk
from planish.levels.hlo.ir.parsing import parse

CALL = "func.call"


def inline_calls(root: ir.Operation, name: str) -> None:
    """Inline every call, then drop the private functions.

    Raises:
        ProgramError: a function calls itself, or one that does not exist.
    """
    known = dict(functions(root))
    for caller in known:
        _inline(caller, known, (), name)
    # After all calls are gone: a function that is erased earlier could not be copied any more.
    for function in known.values():
        if str(function.attributes.get("sym_visibility")) == '"private"':
            function.erase()


def _inline(caller: str, known: Mapping[str, ir.Operation], path: tuple[str, ...], name: str) -> None:
    """Inline the calls of a function, those of what it calls first."""
    if caller in path:
        raise ProgramError(f"function '{caller}' of {name} calls itself", "Give a module without recursion.")
    for call in [op for op in walk(known[caller]) if op.name == CALL]:
        callee = str(call.attributes["callee"]).removeprefix("@")
        if callee not in known:
            raise ProgramError(f"{name} has no function '{callee}'", did_you_mean(callee, known))
        # What is called first: then its body is inlined once, and copied without calls.
        _inline(callee, known, (*path, caller), name)
        with ir.InsertionPoint(call), call.location:
            results = inlined_func_call(known[callee], list(call.operands))
        for old, new in zip(call.results, results, strict=True):
            old.replace_all_uses_with(new)
        call.erase()


FUNCTION = "planish.function"
"""The module's attribute that names the function to evolve, where that is not `main`."""


def load(source: str | bytes, function: str = "", name: str = "the module") -> ir.Operation:
    """Read a module into its normal form.

    Private functions are inlined. Attributes of arguments and results go (sharding, aliasing). Of locations
    only names stay: the layer of an operation, and the name of an argument.

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
    """Return the name of the function that a module says is to be evolved."""
    named = root.attributes.get(FUNCTION)
    return named.value if isinstance(named, ir.StringAttr) else "main"


def normal_text(root: ir.Operation | ir.OpView) -> str:
    """Print a module in normal form with the names of its layers; `load` reads it back."""
    text = root.operation.get_asm(enable_debug_info=True)
    assert isinstance(text, str)
    return text


def named_location(location: ir.Location) -> str:
    """Return a location's name, of an inlined operation else its call's; empty where it has none."""
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
        for foreign in ("arg_attrs", "res_attrs"):
            if foreign in function.attributes:
                del function.attributes[foreign]


def _only_name(location: ir.Location) -> ir.Location:
    name = named_location(location)
    return ir.Location.name(name, context=context()) if name else ir.Location.unknown(context())


_STEP = r"""\['[^']*'\]|\["[^"]*"\]|\[\d+\]|\.\w+"""
_PATH = re.compile(rf"(\w+)((?:{_STEP})+)")


def name_arguments(root: ir.Operation) -> None:
    """Name the arguments of a module's functions as `argument_names` does."""
    for _, function in functions(root):
        for block in list(function.regions[0].blocks)[:1]:
            arguments = list(block.arguments)
            names = argument_names([named_location(argument.location) for argument in arguments])
            for argument, name in zip(arguments, names, strict=True):
                if name:
                    argument.set_location(ir.Location.name(name, context=context()))


def argument_names(paths: Sequence[str]) -> list[str]:
    """Write paths as names with dots: `p['layer']['w']` is "layer.w", and `xs[0]` is "xs.0".

    An entry of a dictionary or an object is named without the argument that it is in, unless two would have
    one name then. What is not a path stays as it is, and so does what has dots alone, as `classifier.bias`:
    that is a name already, unless another path has brackets and begins alike.
    """
    found = [_PATH.fullmatch(path) for path in paths]
    trees = {path[1] for path in found if path and "[" in path[2]}
    parts = [path if path and path[1] in trees else None for path in found]
    short = [_name(part, rooted=False) if part else path for part, path in zip(parts, paths, strict=True)]
    times = Counter(short)
    rooted = [_name(part, rooted=True) if part else path for part, path in zip(parts, paths, strict=True)]
    return [long if times[name] > 1 else name for long, name in zip(rooted, short, strict=True)]


def _name(found: re.Match[str], *, rooted: bool) -> str:
    words = [step.strip("[].'\"") for step in re.findall(_STEP, found[2])]
    return ".".join([found[1], *words] if rooted or found[2][1].isdigit() else words)


def entry_text(root: ir.Operation | ir.OpView, function: str) -> str:
    """Print a function as the `main` of a module that has no other, without ids.

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


def canonical_hash(root: ir.Operation | ir.OpView) -> str:
    """Name what a module computes: without common subexpressions, dead code and ids, in order of use."""
    copy = root.operation.clone().operation
    strip_uids(copy)  # else equal operations would differ
    _passes("cse,trivial-dce").run(copy)
    for _, function in functions(copy):
        # SSA fixes no order, so modules that differ by moved operations alone have one name.
        _order_by_use(function.regions[0].blocks[0])
    return content_hash(printed(copy))


def live_uids(root: ir.Operation | ir.OpView, function: str) -> frozenset[str]:
    """List the ids of a function's operations that its results need."""
    copy = root.operation.clone().operation
    # Without cse: that would take ids of equal operations away, which are all alive.
    _passes("trivial-dce").run(copy)
    return frozenset(uid_of(op) for op in walk(dict(functions(copy))[function])[1:])


@cache
def _passes(names: str) -> passmanager.PassManager:
    passes = passmanager.PassManager.parse(f"builtin.module(func.func({names}))", context())
    # The module was verified when it was edited, and these passes keep it valid.
    passes.enable_verifier(False)
    return passes


def _order_by_use(block: ir.Block) -> None:
    """Put the operations into the order in which those without users, and then the last one, need them."""
    operations = [op.operation for op in block.operations]
    end, here, moved = operations[-1], set(operations), set[ir.Operation]()
    # What is unused and still here has effects.
    unused = [op for op in operations[:-1] if not any(True for result in op.results for _ in result.uses)]
    # A stack and no recursion: chains of operations are longer than Python's own stack is deep.
    stack = [(op, False) for op in (end, *reversed(unused))]
    while stack:
        op, ready = stack.pop()
        if op in moved:
            continue
        if ready:
            moved.add(op)
            if op != end:
                op.move_before(end)
            continue
        stack.append((op, True))
        stack.extend((needed, False) for needed in reversed(_needed(op)) if needed in here)


def _needed(op: ir.Operation) -> list[ir.Operation]:
    """List what made the operands of an operation, and of those inside it."""
    users = walk(op) if len(op.regions) else [op]
    owners = [value.owner for user in users for value in user.operands]
    return [owner.operation for owner in owners if not isinstance(owner, ir.Block)]
