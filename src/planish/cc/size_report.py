"""Sizes of objects and programs by file, section and function, and flags that would make them smaller."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planish.cc.reporting import share
from planish.core import TargetError
from planish.levels.llvm.bindings.elf import (
    code_bytes,
    function_bytes,
    is_object,
    loaded_bytes,
    loaded_sections,
)

_KINDS = (".text", ".rodata", ".data.rel.ro", ".data", ".init_array")
"""Sections of single functions and data, such as `.text.main`, count for these."""
_UNWIND = (".eh_frame", ".eh_frame_hdr", ".ARM.exidx", ".ARM.extab")
_EXCEPTIONS, _RELOCATIONS = ".gcc_except_table", (".rela.dyn", ".rel.dyn")
_LEAST = 256
"""Bytes below which a flag is not worth naming."""


@dataclass(frozen=True)
class FileSize:
    """The size of an object or program.

    Args:
        path: as it was given.
        text: bytes of code.
        loaded: bytes of all that is loaded, but what is zero at the start.
        sections: name to bytes, of those that are loaded.
        functions: name to bytes of code.
        shared: bytes of code in a section that several functions share.
        is_object: whether it is yet to be linked.
    """

    path: str
    text: int
    loaded: int
    sections: Mapping[str, int]
    functions: Mapping[str, int]
    shared: int
    is_object: bool


def file_size(path: Path) -> FileSize:
    """Measure an ELF file.

    Raises:
        TargetError: it is none.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    if not data.startswith(b"\x7fELF"):
        raise TargetError(f"{path} is not an ELF file", "Name objects, programs or libraries for Linux.")
    found, functions = loaded_sections(data), function_bytes(data)
    merged: dict[str, int] = defaultdict(int)
    for name, size in found.items():
        merged[next((kind for kind in _KINDS if name.startswith(f"{kind}.")), name)] += size
    shared = found.get(".text", 0) if len(functions) > 1 else 0
    return FileSize(
        str(path), code_bytes(data), loaded_bytes(data), dict(merged), functions, shared, is_object(data)
    )


@dataclass(frozen=True)
class Suggestion:
    """Flags that may make files smaller.

    Args:
        flags: of the compiler and the linker.
        most: bytes that they concern, which is the most that they can save; None: that cannot be read from
            the files.
        why: in a sentence.
    """

    flags: str
    most: int | None
    why: str


def suggestions(files: Sequence[FileSize]) -> list[Suggestion]:
    """List flags that are worth trying, those that concern the most bytes first."""
    found = [*_for_objects([file for file in files if file.is_object])]
    found += _for_programs([file for file in files if not file.is_object])
    total = _total(files)
    if unwind := sum(total.get(name, 0) for name in _UNWIND):
        why = "unwind tables are needed for C++ exceptions and backtraces only"
        found.append(Suggestion("-fno-asynchronous-unwind-tables -fno-unwind-tables", unwind, why))
    if handlers := total.get(_EXCEPTIONS, 0):
        why = "handlers and their tables go, where no exception is thrown"
        found.append(Suggestion("-fno-exceptions", handlers, why))
    worth = [each for each in found if each.most is None or each.most >= _LEAST]
    return sorted(worth, key=lambda each: (each.most is not None, -(each.most or 0)))


def _for_objects(files: Sequence[FileSize]) -> Iterator[Suggestion]:
    if not files:
        return
    why = "the search then has the whole program, and unused functions go; planish cc searches at the link"
    yield Suggestion("-flto", None, why)
    if size := sum(file.shared for file in files):
        flags = "-ffunction-sections -fdata-sections, and -Wl,--gc-sections at the link"
        yield Suggestion(flags, size, "functions share a section, so unused ones stay")


def _for_programs(files: Sequence[FileSize]) -> Iterator[Suggestion]:
    total = _total(files)
    if size := sum(total.get(name, 0) for name in _RELOCATIONS):
        why = "relocations take a bit each in place of 24 bytes; or -no-pie, which needs none"
        yield Suggestion("-Wl,-z,pack-relative-relocs", size, why)
    if size := total.get(".hash", 0):
        yield Suggestion("-Wl,--hash-style=gnu", size, "the older table of symbols is there besides")
    if files:
        why = "equal functions become one; -flto and -Wl,--gc-sections remove unused ones"
        yield Suggestion("-flto -fuse-ld=lld -Wl,--gc-sections,--icf=all", None, why)


def _total(files: Sequence[FileSize]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for file in files:
        for name, size in file.sections.items():
            total[name] += size
    return total


def size_lines(files: Sequence[FileSize], before: Sequence[FileSize], most: int) -> Iterator[str]:
    """Write what files, sections and functions take, and what to try.

    Args:
        files: to show.
        before: as they were, in the same order; empty where there is nothing to compare with.
        most: functions that are shown.
    """
    earlier = before or [None] * len(files)
    rows = [(file.path, old and old.loaded, file.loaded) for file, old in zip(files, earlier, strict=True)]
    yield from _table("file", rows)
    yield ""
    for title, new, old in (
        ("section", _total(files), _total(before)),
        ("function", _functions(files), _functions(before)),
    ):
        names = sorted({**new, **old}, key=lambda name: (-max(new.get(name, 0), old.get(name, 0)), name))
        if before and title == "function":  # what changed is of interest then
            names.sort(key=lambda name: -abs(new.get(name, 0) - old.get(name, 0)))
        shown = [(name, old.get(name, 0) if before else None, new.get(name, 0)) for name in names[:most]]
        yield from _table(title, shown)
        if len(names) > most:
            yield f"and {len(names) - most:,} more (--top shows more)"
        yield ""
    yield "What to try:"
    for each in suggestions(files):
        bytes_ = "" if each.most is None else f" (at most {each.most:,} bytes)"
        yield f"  {each.flags}{bytes_}: {each.why}"


def _functions(files: Sequence[FileSize]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for file in files:
        for name, size in file.functions.items():
            total[name] += size
    return total


def _table(title: str, rows: Sequence[tuple[str, int | None, int]]) -> Iterator[str]:
    width = max(map(len, [title, *(name for name, _, _ in rows)]))
    compared = any(old is not None for _, old, _ in rows)
    heads = ("before", "bytes", "change") if compared else ("bytes",)
    yield f"{title:<{width}} " + " ".join(f"{head:>{10 - (head == 'change')}}" for head in heads)
    for name, old, new in rows:
        if old is None:
            yield f"{name:<{width}} {new:>10,}"
        else:
            yield f"{name:<{width}} {old:>10,} {new:>10,} {share(old, new):>9}"
