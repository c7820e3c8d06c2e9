"""Objects and programs of a lock file of `planish cc`, made without planish, by clang and opt of its LLVM.

    python3 apply_lock.py planish.lock words.c words.o -Oz -ffunction-sections
    python3 apply_lock.py planish.lock program program -Oz -flto -fuse-ld=lld main.o words.o -lm

The words after the output are clang's, as in the build. For a program of -flto, compile its objects with
`-Xclang -disable-llvm-passes -emit-llvm` in addition. CLANG and OPT name other programs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CLANG, OPT = os.environ.get("CLANG", "clang-22"), os.environ.get("OPT", "opt-22")
IN_MEMORY = "-preserve-bc-uselistorder"  # what the next pass reads is as if no file were between them
UNOPTIMIZED = ("-Xclang", "-disable-llvm-passes")
SECTIONS = ("-ffunction-sections", "-fdata-sections", "-fno-lto")  # as linkers have it
OF_LINKER = ("-flto", "-Wl,", "-fuse-ld", "-l", "-L", "-shared", "-static")
FUNCTION = re.compile(r"^define .*?@([\w.$-]+)\(.*?(?: #(\d+))?(?: [^#\n]*)?\{$", re.MULTILINE)
FEATURES = re.compile(r'"target-features"="([^"]*)"')
ATTRIBUTES = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)


class Module:
    """A module in a file, and passes that are run on it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "module.bc"

    def run(self, passes: str, marks: Iterable[tuple[str, str]] = (), *options: str) -> None:
        """Run passes while functions have more attributes."""
        marks = list(marks)
        table, removal = self.folder / "marks.csv", self.folder / "removal.txt"
        table.write_text("".join(f"{name},{attribute}\n" for name, attribute in marks))
        removal.write_text("".join(f"-force-remove-attribute={name}:{mark}\n" for name, mark in marks))
        first = (
            [f"-passes=forceattrs,{passes}", f"-forceattrs-csv-path={table}"]
            if marks
            else [f"-passes={passes}"]
        )
        self._opt(*first, *([IN_MEMORY] if marks else options))
        if marks:
            self._opt("-passes=forceattrs", f"@{removal}", *options)

    def change(self, attributes: Iterable[tuple[str, list[str]]]) -> None:
        """Set attributes of functions (`KEY=VALUE`), remove others (`-NAME`), add features (`+FEATURE`)."""
        pairs = [(name, change) for change, names in attributes for name in names]
        functions, more = self.functions(), [pair for pair in pairs if pair[1].startswith("+")]
        for name in dict(more):
            had = [*FEATURES.findall(functions.get(name, "")), *(it for each, it in more if each == name)]
            pairs.append((name, f"target-features={','.join(filter(None, had))}"))
        pairs = [pair for pair in pairs if pair not in more]
        removed = [f"-force-remove-attribute={name}:{it[1:]}" for name, it in pairs if it.startswith("-")]
        table, removal = self.folder / "set.csv", self.folder / "removal.txt"
        table.write_text("".join(f"{name},{it}\n" for name, it in pairs if not it.startswith("-")))
        removal.write_text("\n".join(removed))
        if pairs:
            self._opt("-passes=forceattrs", f"-forceattrs-csv-path={table}", f"@{removal}")

    def functions(self) -> dict[str, str]:
        """Return the functions that are defined, and the attributes of each."""
        text = subprocess.run(
            [OPT, "-S", self.path, "-o", "-"], check=True, capture_output=True, text=True
        ).stdout
        groups = dict(ATTRIBUTES.findall(text))
        return {name: groups.get(group, "") for name, group in FUNCTION.findall(text)}

    def _opt(self, *words: str) -> None:
        machine = ("-relocation-model=pic", "-disable-verify")
        order = [] if IN_MEMORY in words else [f"{IN_MEMORY}=false"]
        subprocess.run([OPT, *machine, *order, *words, self.path, "-o", self.path], check=True)


def kept_out(functions: dict[str, str], chosen: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return the marks by which passes leave all functions but some as they are."""
    for name, attributes in functions.items():
        if name not in chosen and "optnone" not in attributes:
            yield name, "optnone"
            if "noinline" not in attributes:
                yield name, "noinline"


def apply(entry: Mapping[str, Any], module: Module) -> None:
    """Run what an entry of the lock file names on an unoptimized module."""
    if entry["result"] == "passes":
        module.run(entry["begin"], entry["inlining"])
        functions = module.functions()
        named = {each for _, names in entry["lists"] for each in names}
        for passes, names in entry["lists"]:
            chosen = names or functions.keys() - named
            module.run(passes, kept_out(functions, chosen), IN_MEMORY)
        module.run(entry["end"])
    else:  # a program by clang's passes
        level = entry["result"][1:]
        if level == "Os":
            module.change([("-minsize", [*module.functions()])])
        module.run(f"lto-pre-link<{level}>,lto<{level}>")
    module.change(entry.get("attributes", ()))


def make_object(entry: Mapping[str, Any], source: str, made: str, options: list[str], folder: Path) -> None:
    """Compile a source."""
    if entry["result"] != "passes":
        level = [] if entry["result"] == "clang" else [entry["result"], *of_llvm(entry)]
        subprocess.run([CLANG, *options, *level, "-c", source, "-o", made], check=True)
        return
    module = Module(folder)
    words = [*options, *UNOPTIMIZED, "-emit-llvm", "-c", source, "-o", module.path]
    subprocess.run([CLANG, *words], check=True)
    apply(entry, module)
    make_code(entry, module, options, made)


def make_program(entry: Mapping[str, Any], made: str, words: list[str], folder: Path) -> None:
    """Link a program: the linker merges the bitcode, and links the code of it in its place."""
    if entry["result"] == "clang":
        subprocess.run([CLANG, *words, "-o", made], check=True)
        return
    module, merged = Module(folder), str(folder / "merged.o")
    subprocess.run([CLANG, *words, "-Wl,-plugin-opt=emit-llvm,-plugin-opt=O0", "-o", module.path], check=True)
    apply(entry, module)
    options = [word for word in words if word.startswith("-") and not word.startswith(OF_LINKER)]
    kind = ["-fPIC"] if "-shared" in words else []
    if not {"-no-pie", "-static"}.isdisjoint(words):
        kind = ["-fno-pic", "-fno-pie"]
    make_code(entry, module, ["-Oz", *options, *kind, *SECTIONS], merged)
    bitcode = [word for word in words if is_bitcode(word)]
    linked = [merged if word == bitcode[0] else word for word in words if word not in bitcode[1:]]
    subprocess.run([CLANG, *linked, "-o", made], check=True)


def make_code(entry: Mapping[str, Any], module: Module, options: list[str], made: str) -> None:
    """Make code of a module, by clang."""
    words = [*options, *of_llvm(entry), *UNOPTIMIZED, "-w", "-c", "-x", "ir", module.path, "-o", made]
    subprocess.run([CLANG, *words], check=True)


def of_llvm(entry: Mapping[str, Any]) -> list[str]:
    """Return the words for clang of an entry's options of LLVM."""
    return [word for option in entry.get("llvm", ()) for word in ("-mllvm", option)]


def is_bitcode(word: str) -> bool:
    """Return whether a word names a file of bitcode."""
    path = Path(word)
    return path.is_file() and path.read_bytes().startswith(b"BC")


def main() -> None:
    lock, source, made, *words = sys.argv[1:]
    name = os.path.relpath(Path(source).absolute(), Path(lock).absolute().parent)
    (entry,) = json.loads(Path(lock).read_text())["sources"][name]
    with tempfile.TemporaryDirectory() as folder:
        if any(map(is_bitcode, words)):
            make_program(entry, made, words, Path(folder))
        else:
            make_object(entry, source, made, words, Path(folder))


if __name__ == "__main__":
    main()
