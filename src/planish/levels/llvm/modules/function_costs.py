"""Costs of a module's functions, one by one, and the attributes of each by which it costs less.

A function may take less code when it keeps a frame pointer, since addresses relative to it are shorter, or
when it is no longer `minsize`: for x86-64, `-Oz` loads constants by `push` and `pop`, each of which takes two
entries of the unwind table as well. On RISC-V, functions may do without the registers that few compressed
instructions can name, and may save and restore registers by functions of the run-time library. The code that
LLVM makes with each of the attributes decides.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from planish.levels.llvm.bindings.c_definitions import WITHOUT
from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.elf import code_bytes, function_loads, loaded_bytes
from planish.levels.llvm.bindings.protocol import IRError, PassError
from planish.levels.llvm.modules.stored_costs import StoredCosts, exact_names, plain_text
from planish.levels.llvm.modules.transform import Sizes, single, whole_bindings

_UNWINDING = ("-minsize",), ("frame-pointer=all",)
"""Changes of attributes by which functions for x86 are measured, too, where unwind tables count."""
_X86 = re.compile(r'^target triple = "(?:x86_64|i[3-6]86)', re.MULTILINE)


@dataclass(frozen=True)
class FunctionCosts:
    """Measures functions. Code is made only of those whose text is new.

    Args:
        objective: what is measured: `text_bytes`, `instructions`, or `loaded_bytes` (code and unwind tables).
        known: the texts that functions became, as `_named` names them, and what those cost.
        stored: what searches on other modules measured; None: nothing is stored.
    """

    objective: str
    known: dict[str, int] = field(default_factory=dict[str, int])
    stored: StoredCosts | None = None

    def try_list(self, module: CModule, pipeline: str) -> Sizes | None:
        """Return the costs of a module's functions after a pipeline; None where LLVM refuses it."""
        with closing(module.clone()) as copy:
            try:
                copy.run(pipeline)
                return None if copy.verify() else self.measure(copy)[0]
            except (PassError, IRError):
                return None

    def measure(self, module: CModule, *, makes_all: bool = False) -> tuple[Sizes, int]:
        """Measure the functions of a module, of which no more is made afterwards.

        Args:
            module: it.
            makes_all: whether code is made of functions that other modules have, too.

        Returns:
            Their costs, and the bytes that the code which was made has besides functions.
        """
        definitions = module.definitions()
        if self.objective == "instructions":
            return definitions.instructions(), 0
        printed = module.text()
        bodies = {name: body for name, body in definitions.texts(printed).items() if name}
        texts = {name: _named(name, body) for name, body in bodies.items()}
        fresh, rest = {name for name, text in texts.items() if text not in self.known}, 0
        exact = exact_names(printed, {name: bodies[name] for name in fresh}) if self.stored else {}
        if self.stored and not makes_all:
            found = {texts[name]: self.stored.get(exact[name]) for name in fresh}
            self.known.update((text, cost) for text, cost in found.items() if cost is not None)
            fresh = {name for name in fresh if texts[name] not in self.known}
        if fresh:
            # Code generation takes most of the time, and most lists leave most functions as they were.
            keep_only(module, fresh)
            has_tables = self.objective == "loaded_bytes" and _X86.search(printed)
            made = best_code(module, self.objective, _UNWINDING if has_tables else ())
            sizes = {name: made.sizes[name] for name in sorted(fresh) if name in made.sizes}
            self.known.update((texts[name], size) for name, size in sizes.items())
            if self.stored:
                self.stored.add({exact[name]: size for name, size in sizes.items()})
            rest = made.total - sum(sizes.values())
        return {name: self.known[text] for name, text in texts.items() if text in self.known}, rest


def keep_only(module: CModule, names: Collection[str]) -> None:
    """Make declarations of all definitions of a module but some, and those that aliases need."""
    definitions = module.definitions()
    definitions.leave_out([name for name in definitions.by_name if name not in names])
    module.run(WITHOUT)


def _named(name: str, text: str) -> str:
    """Name a function's text."""
    plain = plain_text(f"{name} {text}")
    return hashlib.sha256(plain.encode(errors="surrogateescape")).hexdigest()


# Attributes

Attributes = tuple[tuple[str, tuple[str, ...]], ...]
"""Changes, as `Definitions.change` takes them, each with the functions that it is for."""
SAVE_RESTORE = "+save-restore"
"""Has a function call the run-time library; so it is for whole programs, which may not link then."""
FEW_REGISTERS = ",".join(f"+reserve-x{number}" for number in range(19, 28))
"""Has a function for RISC-V use three of the twelve registers that it would have to save."""
CHANGES = ("-minsize", "frame-pointer=all", "no-jump-tables=true", FEW_REGISTERS, SAVE_RESTORE)
"""Attributes that may be changed: no function does anything else because of them."""
VARIANTS = (
    ("-minsize",),
    ("frame-pointer=all",),
    ("-minsize", "frame-pointer=all"),
    ("no-jump-tables=true",),
)
_OF_RISCV = ((FEW_REGISTERS,),)
_WITH_RUNTIME = ((SAVE_RESTORE,), ("-minsize", SAVE_RESTORE), (FEW_REGISTERS, SAVE_RESTORE))
_ASSEMBLY = re.compile(r"^\s.* asm (?:sideeffect |alignstack |inteldialect |unwind )*\"", re.MULTILINE)


def with_attributes(code: bytes, attributes: Attributes) -> bytes:
    """Return the bitcode of a module with changed attributes; functions that it does not define are skipped.

    Raises:
        IRError: the module is malformed.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        _change(module, attributes)
        return module.bitcode()


def best_attributes(code: bytes, objective: str, *, with_runtime: bool = False) -> Attributes:
    """Return the changes by which functions of a module become smaller.

    Args:
        code: the module, of which code is yet to be made.
        objective: `text_bytes`, where tables decide between equal code, or `loaded_bytes`, where they count.
        with_runtime: whether functions may save and restore registers by the run-time library, on RISC-V.

    Raises:
        IRError: the module is malformed, or no code is made of it.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        variants = (*VARIANTS, *(_OF_RISCV if module.triple.startswith("riscv") else ()))
        variants += _WITH_RUNTIME if with_runtime else ()
        chosen = best_code(module, objective, variants).chosen
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
    """Return the costs of functions with the best of several changes of their attributes.

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
