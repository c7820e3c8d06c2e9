"""Libraries for several shapes: a variant of the network for each, and a function that selects one by shapes.

The variants share their weights. Each is compiled, verified and timed as a library of its own; then their
sections are linked to one, with the variant's number before each symbol.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from planish.core import ProgramError
from planish.core.hashing import versioned
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import RELOCATED, Relocation, Section, Symbol, read_object
from planish.network.library.assembly import Built
from planish.network.library.elf import WEIGHTS
from planish.network.library.header import ReturnCode, header

MOST_VARIANTS = 64
"""Variants of a library."""
_EXTENT = re.compile(r"(\d+)(?:\.\.(\d+)(?::(\d+))?)?")

# Shapes


def concrete_shapes(text: str) -> list[str]:
    """List the shapes that a text with ranges stands for: one for each variant.

    Args:
        text: as `x=1..8x3x224x224`; `a..b` are all extents from a to b, `a..b:s` those s apart. Equal ranges
            vary together, different ones are combined. Several inputs are separated by commas.

    Raises:
        ProgramError: a range is malformed or empty, or there are too many variants.
    """
    ranges = list[str]()
    parts = [part.partition("=") for part in text.split(",")] if ".." in text else []
    for _, _, extents in parts:
        ranges += [extent for extent in extents.split("x") if ".." in extent and extent not in ranges]
    choices = [_extents(each) for each in ranges]
    count = prod(map(len, choices))
    if count > MOST_VARIANTS:
        what = f"shape '{text}' stands for {count} variants; a library has {MOST_VARIANTS} at most"
        raise ProgramError(what, "Use steps: x=16..128:16.")
    found = list[str]()
    for chosen in product(*choices) if ranges else ():
        value = dict(zip(ranges, map(str, chosen), strict=True))
        shapes = (
            "x".join(value.get(extent, extent) for extent in extents.split("x")) for _, _, extents in parts
        )
        found.append(",".join(f"{name}={shape}" for (name, _, _), shape in zip(parts, shapes, strict=True)))
    return found or [text]


def _extents(text: str) -> Sequence[int]:
    matched = _EXTENT.fullmatch(text)
    first, last, step = (int(part or 1) for part in matched.groups()) if matched else (1, 0, 1)
    if not (0 < first <= last and step):
        raise ProgramError(f"expected a range of sizes, got '{text}'", "Write it as 1..8, or 16..128:16.")
    return range(first, last + 1, step)


# Libraries


def join_variants(variants: Sequence[Built]) -> Built:
    """Join libraries of one network, built with the same weights, to one with a variant for each."""
    first, last = variants[0], variants[-1]
    sections = [_renamed(s, index) for index, built in enumerate(variants) for s in built.sections]
    sections += [
        *_table(variants),
        *read_object(jit.object_code(_selection(variants), first.machine), "select"),
    ]
    manifest = versioned(
        {
            "network": first.manifest["network"],
            "workspace_bytes": max(built.manifest["workspace_bytes"] for built in variants),
            "least_workspace_bytes": max(built.manifest["least_workspace_bytes"] for built in variants),
            "weights_bytes": len(last.weights),
            "cores": max(built.manifest["cores"] for built in variants),
            "target": first.manifest["target"],
            "variants": [built.manifest for built in variants],
        }
    )
    ports = [(built.manifest["inputs"], built.manifest["outputs"]) for built in variants]
    text = header(ports, manifest["workspace_bytes"])
    threads = any(built.has_threads for built in variants)
    exported = ["model_find", "model_run", "model_variants"]
    exported += [f"{_prefix(index)}model_run_layers" for index in range(len(variants))]
    return replace(
        first, sections=sections, header=text, manifest=manifest, weights=last.weights, has_threads=threads,
        exported=exported,
    )  # fmt: skip


def _prefix(index: int) -> str:
    return f"variant{index}_"


def _renamed(section: Section, index: int) -> Section:
    """Put a variant's number before the symbols of a section; functions of the process keep their names."""
    kept = (WEIGHTS, "pthread_create")
    symbols = [symbol._replace(name=_prefix(index) + symbol.name) for symbol in section.symbols]
    moved = [
        each if each.symbol in kept else each._replace(symbol=_prefix(index) + each.symbol)
        for each in section.relocations
    ]
    return replace(section, symbols=symbols, relocations=moved)


def _table(variants: Sequence[Built]) -> list[Section]:
    """Write the array of `struct model_variant`."""
    kind = variants[0].architecture.absolute
    moved = [
        Relocation(16 * index + 8 * number, kind, f"{_prefix(index)}{name}")
        for index in range(len(variants))
        for number, name in enumerate(("model_inputs", "model_outputs"))
    ]
    content = bytes(16 * len(variants))
    return [
        Section(RELOCATED, content, [Symbol("model_variants", 0, len(content), is_function=False)], moved)
    ]


def _selection(variants: Sequence[Built]) -> str:
    """Write the functions that select a variant by shapes, and run one, as IR."""
    calls = ("ptr", "ptr", "ptr")
    lines = [
        f"declare hidden i32 @{_prefix(i)}model_run({', '.join(calls)}) nounwind"
        for i in range(len(variants))
    ]
    lines += ["", "define i32 @model_find(ptr %shapes) nounwind {"]
    extents = list[str]()
    for number, port in enumerate(variants[0].manifest["inputs"]):
        lines += [
            f"  %shape{number}_ = getelementptr ptr, ptr %shapes, i64 {number}",
            f"  %shape{number} = load ptr, ptr %shape{number}_",
        ]
        for dimension in range(len(port["shape"])):
            name = f"%e{number}_{dimension}"
            extents.append(name)
            lines += [
                f"  {name}_ = getelementptr i64, ptr %shape{number}, i64 {dimension}",
                f"  {name} = load i64, ptr {name}_",
            ]
    lines.append("  br label %variant0")
    for index, built in enumerate(variants):
        lines.append(f"variant{index}:")
        wanted = [extent for port in built.manifest["inputs"] for extent in port["shape"]]
        before = "true"
        for number, (name, extent) in enumerate(zip(extents, wanted, strict=True)):
            same, both = f"%same{index}_{number}", f"%both{index}_{number}"
            lines += [f"  {same} = icmp eq i64 {name}, {extent}", f"  {both} = and i1 {before}, {same}"]
            before = both
        lines += [
            f"  br i1 {before}, label %is{index}, label %variant{index + 1}",
            f"is{index}:",
            f"  ret i32 {index}",
        ]
    lines += [f"variant{len(variants)}:", "  ret i32 -1", "}", ""]
    lines.append("define i32 @model_run(i32 %variant, ptr %inputs, ptr %outputs, ptr %workspace) nounwind {")
    cases = " ".join(f"i32 {index}, label %run{index}" for index in range(len(variants)))
    lines += [
        f"  switch i32 %variant, label %none [{cases}]",
        "none:",
        f"  ret i32 {ReturnCode.NO_VARIANT.value}",
    ]
    for index in range(len(variants)):
        call = f"call i32 @{_prefix(index)}model_run(ptr %inputs, ptr %outputs, ptr %workspace)"
        lines += [f"run{index}:", f"  %code{index} = {call}", f"  ret i32 %code{index}"]
    return "\n".join([*lines, "}", ""])
