"""Report of what was saved: of one compilation, and of a build."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planish.cc.object_cache import contents
from planish.cc.settings import say

_FUNCTIONS = 5


@dataclass(frozen=True)
class Gain:
    """A function of another size than clang's.

    Args:
        name: as the object has it.
        before, after: bytes of code; 0 where it is not there, since it is inlined everywhere.
        passes: what it went through besides; none where only what is inlined differs.
    """

    name: str
    before: int
    after: int
    passes: tuple[str, ...]


@dataclass(frozen=True)
class Faster:
    """An object that makes a program faster.

    Args:
        source: what it is made of.
        times: how many times as fast the program is, and the ends of the interval.
        functions: of another list than clang's: with the share of the time, and the pipeline.
    """

    source: str
    times: tuple[float, float, float]
    functions: tuple[tuple[str, float, str], ...]


@dataclass(frozen=True)
class Compiled:
    """The outcome of one source of a build.

    Args:
        output: the object, or the program that it is for.
        source: the file.
        how: "searched", "known" or "clang".
        seconds: that it took.
        search_s: of these, the search.
        text: bytes of code before and after; None where clang's result was not looked at.
        functions: those of another size than clang's.
        why: it was left to clang; empty where it was not.
        faster: of a program that was run, the objects that make it faster; None: it was not.
    """

    output: str
    source: str
    how: str
    seconds: float
    search_s: float
    text: tuple[int, int] | None
    functions: tuple[Gain, ...]
    why: str
    faster: tuple[Faster, ...] | None = None

    @property
    def saved(self) -> int:
        """Return the bytes of code that were saved."""
        return self.text[0] - self.text[1] if self.text else 0


def sizes(own: bytes, made: bytes, passes: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """Return the report on clang's object and the one that was made, as JSON has it.

    Args:
        own: clang's object.
        made: the other one.
        passes: the lists that functions have of their own.
    """
    from planish.levels.llvm.bindings.elf import (  # a report is printed without LLVM
        code_bytes,
        function_bytes,
        loaded_bytes,
    )

    before, after = function_bytes(own), function_bytes(made)
    both = ((name, before.get(name, 0), after.get(name, 0)) for name in {**before, **after})
    changed = sorted((row for row in both if row[1] != row[2]), key=lambda row: row[2] - row[1])
    functions = [(*row, passes.get(row[0], ())) for row in changed]
    counted = {"text": code_bytes, "loaded": loaded_bytes}
    return {**{name: [count(own), count(made)] for name, count in counted.items()}, "functions": functions}


def report(source: str, how: str, about: bytes, seconds: float) -> None:
    """Print what was done for a source, and for its functions."""
    one = _read_about("", source, how, seconds, about)
    if one.faster is not None:
        for line in _of_program(source, one):
            say(line)
        return
    if one.text is None:
        say(f"{source}: left to clang: {one.why}")
        return
    before, after = one.text
    loaded = "{:,} -> {:,}".format(*json.loads(about).get("loaded", one.text))
    sizes = f".text {before:,} -> {after:,} bytes ({share(before, after)}), loaded {loaded}"
    say(f"{source}: {sizes}, {how}, {seconds:.2f} s")
    for gain in one.functions[:_FUNCTIONS]:
        by = ",".join(gain.passes) or "what is inlined"
        say(f"  {gain.name}: {gain.before:,} -> {gain.after:,} by {by}")
    if len(one.functions) > _FUNCTIONS:
        say(f"  and {len(one.functions) - _FUNCTIONS} more functions")


def _of_program(name: str, one: Compiled) -> Iterator[str]:
    """Describe how much faster a program is, and by which functions."""
    if not one.faster:
        yield f"{name}: nothing faster was found, {one.how}, {one.seconds:.2f} s"
    for each in one.faster or ():
        value, low, high = each.times
        yield f"{name}: {value:.3f} times as fast ({low:.3f} to {high:.3f}) by {each.source}, {one.how}"
        yield from (f"  {function}, {part:.0%} of the time" for function, part, _ in each.functions)


def share(before: int, after: int) -> str:
    """Write what was saved as a share: `-3.2 %`."""
    return f"{100 * (after - before) / before:+.1f} %" if before else "0 %"


def builds(cache: str, folder: Path) -> list[Compiled]:
    """List what was last done for each source whose object is in a folder, and is still there.

    Args:
        cache: folder of the object cache, which keeps what was done.
        folder: of the objects.
    """
    found: dict[tuple[str, str], Compiled] = {}
    for path in sorted(Path(cache).glob("builds/*/*"), key=lambda path: path.stat().st_mtime):
        one = _read_build(path)
        if one and Path(one.output).is_relative_to(folder) and Path(one.output).exists():
            found[one.output, one.source] = one
    return sorted(found.values(), key=lambda one: (-one.saved, one.source))


def _read_build(path: Path) -> Compiled | None:
    """Read what was noted; None for what is damaged, or not for this user."""
    try:
        output, source, how, seconds, about = (contents(path.read_bytes()) or b"").split(b"\0")
        return _read_about(os.fsdecode(output), os.fsdecode(source), how.decode(), float(seconds), about)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_about(output: str, source: str, how: str, seconds: float, about: bytes) -> Compiled:
    said = json.loads(about)
    return Compiled(
        output,
        source,
        how,
        seconds,
        search_s=float(said.get("search_s", 0)) if how == "searched" else 0.0,
        text=tuple(said["text"]) if "text" in said else None,
        functions=tuple(Gain(n, old, new, tuple(by)) for n, old, new, by in said.get("functions", ())),
        why=str(said.get("why", "")),
        faster=tuple(map(_read_faster, said["faster"])) if "faster" in said else None,
    )


def _read_faster(said: Mapping[str, Any]) -> Faster:
    value, low, high = said["ratio"]
    functions = tuple((name, part, passes) for name, part, passes in said["functions"])
    return Faster(said["source"], (1 / value, 1 / high, 1 / low), functions)


def lines(done: list[Compiled], folder: Path) -> Iterator[str]:
    """Write the report of a build: files and functions, the greatest savings first, and the time."""
    yield from _by_file(done, folder)
    yield ""
    yield from _by_function(done)
    yield ""
    seconds, searching = sum(one.seconds for one in done), sum(one.search_s for one in done)
    known = sum(one.how == "known" for one in done)
    took = f"{seconds:.1f} s in all, {searching:.1f} s of them searching"
    yield f"{took}; {known:,} of {len(done):,} came from the cache"
    yield from (f"left to clang: {one.source}: {one.why}" for one in done if one.why)
    for one in done:
        if one.faster is not None:
            yield from _of_program(str(Path(one.output).relative_to(folder)), one)


def _by_file(done: list[Compiled], folder: Path) -> Iterator[str]:
    names = [_name(one, folder) for one in done]
    width = max(map(len, names), default=0)
    yield f"{'object':<{width}} {'clang':>10} {'planish':>10} {'.text':>9}"
    total_before = total_after = 0
    for name, one in zip(names, done, strict=True):
        if one.text:
            before, after = one.text
            total_before, total_after = total_before + before, total_after + after
            yield f"{name:<{width}} {before:>10,} {after:>10,} {share(before, after):>9}"
    name = f"{sum(one.text is not None for one in done):,} in all"
    yield f"{name:<{width}} {total_before:>10,} {total_after:>10,} {share(total_before, total_after):>9}"


def _name(one: Compiled, folder: Path) -> str:
    """Name an object; a program by its source too."""
    name = str(Path(one.output).relative_to(folder))
    return name if one.output.endswith((".o", ".lo", ".obj")) else f"{name} ({Path(one.source).name})"


def _by_function(done: list[Compiled]) -> Iterator[str]:
    gains = [(gain, Path(one.source).name) for one in done for gain in one.functions]
    gains.sort(key=lambda row: row[0].after - row[0].before)
    smaller = sum(gain.after < gain.before for gain, _ in gains)
    yield f"functions: {smaller:,} smaller, {len(gains) - smaller:,} larger"
    for gain, source in gains[: 4 * _FUNCTIONS]:
        name = f"{source}: {gain.name}"
        yield f"  {name:<42} {gain.before:>10,} {gain.after:>10,} {gain.after - gain.before:>+9,}"
