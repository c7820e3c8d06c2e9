"""Objects of a lock file of `planish cc`, made without planish: by clang and opt of the same LLVM.

    python3 apply_lock.py planish.lock words.c words.o -Oz -ffunction-sections

The words after the object are clang's options, as in the build. CLANG and OPT name other programs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

CLANG, OPT = os.environ.get("CLANG", "clang-22"), os.environ.get("OPT", "opt-22")
IN_MEMORY = "-preserve-bc-uselistorder"  # what the next pass reads is as if no file were between them
OUTLINER = {
    "": [],
    "always": ["-mllvm", "-enable-machine-outliner=always"],
    "never": ["-mllvm", "-enable-machine-outliner=never"],
    "repeated": ["-mllvm", "-enable-machine-outliner=always", "-mllvm", "-machine-outliner-reruns=4"],
}
FUNCTION = re.compile(r"^define .*?@([\w.$-]+)\(.*?(?: #(\d+))?(?: [^#\n]*)?\{$", re.MULTILINE)
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
        """Set attributes of functions (`KEY=VALUE`), and remove others (`-NAME`)."""
        pairs = [(name, change) for change, names in attributes for name in names]
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
        subprocess.run([OPT, *machine, *words, self.path, "-o", self.path], check=True)


def kept_out(functions: dict[str, str], chosen: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Return the marks by which passes leave all functions but some as they are."""
    for name, attributes in functions.items():
        if name not in chosen and "optnone" not in attributes:
            yield name, "optnone"
            if "noinline" not in attributes:
                yield name, "noinline"


def main() -> None:
    lock, source, made, *options = sys.argv[1:]
    name = os.path.relpath(Path(source).absolute(), Path(lock).absolute().parent)
    (entry,) = json.loads(Path(lock).read_text())["sources"][name]
    code = OUTLINER[entry.get("outliner", "")]
    if entry["result"] != "passes":
        level = ["-Os"] if entry["result"] == "-Os" else []
        subprocess.run([CLANG, *options, *level, "-c", source, "-o", made], check=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        module, unoptimized = Module(Path(folder)), ("-Xclang", "-disable-llvm-passes")
        subprocess.run(
            [CLANG, *options, *unoptimized, "-emit-llvm", "-c", source, "-o", module.path], check=True
        )
        module.run(entry["begin"], entry["inlining"])
        functions = module.functions()
        named = {each for _, names in entry["lists"] for each in names}
        for passes, names in entry["lists"]:
            chosen = names or functions.keys() - named
            module.run(passes, kept_out(functions, chosen), IN_MEMORY)
        module.run(entry["end"])
        module.change(entry.get("attributes", ()))
        words = [*options, *code, *unoptimized, "-w", "-c", "-x", "ir", module.path, "-o", made]
        subprocess.run([CLANG, *words], check=True)


if __name__ == "__main__":
    main()
