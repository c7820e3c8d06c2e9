"""The names of a function's arguments, where JAX wrote them: paths into trees of parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from planish.hlo.ir.mlir_context import context, ir
from planish.hlo.ir.normal import named_location
from planish.hlo.ir.uids import functions

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
    one name then. What is no path stays as it is, and so does what has dots alone, as `classifier.bias`: that
    is a name already, unless another path has brackets and begins alike.
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
