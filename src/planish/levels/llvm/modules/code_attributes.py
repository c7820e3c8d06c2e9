"""Attributes of single functions by which less code is made of them.

A function may take less code when it keeps a frame pointer, since addresses relative to it are shorter, or
when it is no longer `minsize`: for x86-64, `-Oz` loads constants by `push` and `pop`, each of which takes two
entries of the unwind table as well. The code that LLVM makes with each of the attributes decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass

from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.elf import code_bytes, function_loads, loaded_bytes
from planish.levels.llvm.bindings.protocol import IRError
from planish.levels.llvm.modules.transform import single, whole_bindings

Attributes = tuple[tuple[str, tuple[str, ...]], ...]
"""Changes, as `Definitions.change` takes them, each with the functions that it is for."""
CHANGES = ("-minsize", "frame-pointer=all", "no-jump-tables=true")
"""What may be changed: no function does anything else because of it."""
VARIANTS = (
    ("-minsize",),
    ("frame-pointer=all",),
    ("-minsize", "frame-pointer=all"),
    ("no-jump-tables=true",),
)
_ASSEMBLY = re.compile(r"^\s.* asm (?:sideeffect |alignstack |inteldialect |unwind )*\"", re.MULTILINE)


def with_attributes(code: bytes, attributes: Attributes) -> bytes:
    """Return the bitcode of a module with changed attributes; functions that it does not define are skipped.

    Raises:
        IRError: the module is malformed.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        _change(module, attributes)
        return module.bitcode()


def best_attributes(code: bytes, objective: str) -> Attributes:
    """Return the changes by which functions of a module become smaller.

    Args:
        code: the module, of which code is yet to be made.
        objective: `text_bytes`, where tables decide between equal code, or `loaded_bytes`, where they count.

    Raises:
        IRError: the module is malformed, or no code is made of it.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        chosen = best_code(module, objective, VARIANTS).chosen
    found = ((each, tuple(sorted(name for name in chosen if each in chosen[name]))) for each in CHANGES)
    return tuple(each for each in found if each[1])


@dataclass(frozen=True)
class BestCode:
    """The code of a module, and of its functions with the attributes that are best for each.

    Args:
        total: bytes of the module's code.
        sizes: bytes of each function.
        chosen: changes of the attributes of functions; none of the others.
    """

    total: int
    sizes: dict[str, int]
    chosen: dict[str, tuple[str, ...]]


def best_code(module: CModule, objective: str, variants: Collection[tuple[str, ...]]) -> BestCode:
    """Return what functions cost with the best of several changes of their attributes.

    Args:
        module: of which code is made; no more is made of it afterwards.
        objective: as in `best_attributes`.
        variants: changes that are tried together on each function.

    Raises:
        IRError: no code is made of the module.
    """
    definitions = module.definitions()
    # What the machine outliner moves out of functions would cost nothing.
    definitions.change(definitions.by_name, "nooutline=")
    code = module.object_code()
    before, chosen = _costs(code, objective), dict[str, tuple[str, ...]]()
    names, least = _changeable(module) if variants else frozenset[str](), dict(before)
    for variant in variants if names else ():
        for name, cost in _costs_with(module, variant, names, objective).items():
            if name in names and cost < least[name]:
                least[name], chosen[name] = cost, variant
    total = loaded_bytes(code) if objective == "loaded_bytes" else code_bytes(code)
    saved = sum(before[name][0] - least[name][0] for name in chosen)
    return BestCode(total - saved, {name: cost[0] for name, cost in least.items()}, chosen)


def _changeable(module: CModule) -> frozenset[str]:
    """Name the `minsize` functions without assembly, which may use registers that a frame pointer takes."""
    definitions = module.definitions()
    small = definitions.having("minsize") - definitions.having("naked") - definitions.having("optnone")
    texts = definitions.texts() if small else {}
    return frozenset(name for name in small if not _ASSEMBLY.search(texts[name]))


def _costs_with(
    module: CModule, variant: tuple[str, ...], names: Collection[str], objective: str
) -> Mapping[str, tuple[int, int]]:
    with closing(module.clone()) as copy:
        _change(copy, tuple((change, tuple(names)) for change in variant))
        try:
            return _costs(copy.object_code(), objective)
        except IRError:  # of one function; the others are as well without the variant
            return {}


def _costs(code: bytes, objective: str) -> dict[str, tuple[int, int]]:
    loads = function_loads(code).items()
    is_total = objective == "loaded_bytes"
    return {name: (text + more, text) if is_total else (text, more) for name, (text, more) in loads}


def _change(module: CModule, attributes: Attributes) -> None:
    definitions = module.definitions()
    for change, names in attributes:
        definitions.change(names, change)
