"""C to LLVM IR: a clang of this machine, else the one in the `ziglang` wheel."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from planish.core import ProgramError, TargetError, cache_folder
from planish.core.installation import install_command
from planish.sandbox.scratch import check_room
from planish.sandbox.tool import Ran, run_tool

OLDEST = 17  # older ones write typed pointers
VARIABLE = "PLANISH_CLANG"
_SECONDS = 60.0
_PLAIN = ("-g0", "-S", "-emit-llvm", "-fno-stack-protector", "-fno-ident")
FAST = "O3 without passes"
"""Level of the code that clang -O3 hands to its passes: with types for alias analysis and with lifetimes."""
_OF_LEVEL = {
    "O0": ("-O0", "-Xclang", "-disable-O0-optnone"),
    FAST: ("-O3", "-Xclang", "-disable-llvm-passes"),
}
_VERSION = re.compile(r"clang version (\d+)\.(\d+)\.(\d+)")
_TRIPLE = re.compile(r'^(target triple = )"x86_64-\w+-linux[^"]*-gnu[^"]*"', re.MULTILINE)
_FEATURES = re.compile(r'"target-features"="([^"]*)"')
_LIKED = frozenset(
    ("+64bit", "+idivq-to-divl", "+macrofusion", "+nopl", "+slow-3ops-lea", "+slow-incdec", "+vzeroupper")
)
_ERROR = re.compile(r"^(?P<location>[^\n]*?):\s*(?:fatal )?error: (?P<what>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiler:
    """A C compiler that writes LLVM IR.

    Args:
        command: the program and the arguments that it always needs.
        version: LLVM's version: "22.1.8".
        environment: variables that it needs.
        writes_files: whether it cannot write to standard output.
    """

    command: tuple[str, ...]
    version: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    writes_files: bool = False

    @property
    def name(self) -> str:
        """Return the name that users know it by: `clang-22` or `ziglang`."""
        return "ziglang" if "ziglang" in self.command else Path(self.command[0]).name

    def to_ir(
        self,
        path: Path | str,
        flags: Sequence[str] = (),
        level: str = "O0",
        *,
        source: str | None = None,
        seconds: float = _SECONDS,
    ) -> str:
        """Compile a C file to textual IR.

        Args:
            path: the file; what errors call it where `source` is given.
            flags: further arguments, as `-I` and `-D`.
            level: of optimization; at "O0" nothing forbids passes to optimize later, and `FAST` is what those
                of -O3 start from.
            source: the C text, instead of the file's.
            seconds: after which the compiler is killed.

        Returns:
            The module without debug information.

        Raises:
            ProgramError: it does not compile; the message has the compiler's first error.
            OSError: the disk is full.
        """
        arguments = (
            *_OF_LEVEL.get(level, (f"-{level}",)),
            *_PLAIN,
            *flags,
            str(path) if source is None else "-",
        )
        if not self.writes_files:
            return self._compiled(path, (*arguments, "-o", "-"), source or "", seconds)
        with tempfile.TemporaryDirectory(prefix="planish-") as folder:
            written = Path(folder) / "module.ll"
            self._compiled(path, (*arguments, "-o", str(written)), source or "", seconds)
            return _plain(written.read_text(errors="backslashreplace"))

    def header_folders(self) -> list[Path]:
        """List where `#include <...>` is looked up without further flags."""
        ran = self._run(("-E", "-v", "-"), "", _SECONDS)
        _, _, listed = ran.message.partition("search starts here:\n#include <...>")
        lines = listed.partition("End of search list")[0].splitlines()
        return [Path(line.strip()) for line in lines if line.startswith(" ") and Path(line.strip()).is_dir()]

    def _compiled(self, path: Path | str, arguments: Sequence[str], source: str, seconds: float) -> str:
        try:
            ran = self._run(arguments, source, seconds)
        except TimeoutError as error:
            raise ProgramError(f"{path}: the compiler did not end within {seconds:g} s") from error
        if ran.code:
            # A full disk is not a mistake in the program, and must not be reported as one.
            check_room(self.command[0], ran.message)
            found = _ERROR.search(ran.message)
            last = (ran.message.strip().splitlines() or [f"exit code {ran.code}"])[-1]
            what = f"{found['location']}: {found['what']}" if found else last
            raise ProgramError(f"{path} does not compile: {what}")
        return ran.output.decode(errors="backslashreplace")

    def _run(self, arguments: Sequence[str], text: str, seconds: float) -> Ran:
        command = [*self.command, "-x", "c", *arguments]
        # Its messages are read, and would be in the user's language.
        variables = {**self.environment, "LC_ALL": "C"}
        try:
            return run_tool(command, seconds=seconds, given=text.encode(), variables=variables)
        except TimeoutError:  # it is an OSError too
            raise
        except OSError as error:
            raise TargetError(f"{self.command[0]} does not run: {error}", f"See {VARIABLE}.") from error


def find_compiler(newest: int) -> Compiler:
    """Find a C compiler whose IR can be read.

    The one that PLANISH_CLANG names, else the newest `clang` or `clang-NN` on PATH, else the `ziglang` wheel.

    Args:
        newest: the back end's LLVM, as 22; IR of a newer one it may not read.

    Raises:
        TargetError: there is none.
    """
    # Named by the user: no other one replaces it, even where it cannot be used.
    if named := os.environ.get(VARIABLE):
        compiler = _asked(tuple(shlex.split(named)))
        if compiler is None:
            what = f"{VARIABLE}={named} does not run as clang does"
            raise TargetError(what, "Set the variable to a clang, or unset it.")
        if not _fits(compiler, newest):
            own = f"{VARIABLE}={named} is of LLVM {compiler.version}"
            raise TargetError(f"{own}; what can be read is {OLDEST} to {newest}", "Name another one.")
        return compiler
    names = ("clang", *(f"clang-{major}" for major in range(newest, OLDEST - 1, -1)))
    found = [_asked((path,)) for name in names if (path := shutil.which(name))]
    usable = [compiler for compiler in found if compiler and _fits(compiler, newest)]
    if usable:
        return max(usable, key=lambda compiler: _numbers(compiler.version))
    zig = _ziglang()
    if zig and _fits(zig, newest):
        return zig
    other = f"; ziglang has {zig.version}" if zig else ""
    what = f"no C compiler of LLVM {OLDEST} to {newest} is here{other}"
    raise TargetError(what, f"Install one: apt-get install clang-{newest}, or {install_command('corpus')}.")


def _fits(compiler: Compiler, newest: int) -> bool:
    return OLDEST <= _numbers(compiler.version)[0] <= newest


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _asked(command: tuple[str, ...], environment: Mapping[str, str] | None = None) -> Compiler | None:
    """Ask a command for its version; None where it is not clang. Apple's numbers are not LLVM's."""
    variables = dict(environment or {})
    try:
        ran = run_tool([*command, "--version"], seconds=_SECONDS, variables=variables)
    except OSError:  # a timeout too
        return None
    output = ran.output.decode(errors="replace")
    found = None if "Apple" in output else _VERSION.search(output)
    return Compiler(command, ".".join(found.groups()), variables) if found else None


def _ziglang() -> Compiler | None:
    """Return the wheel's compiler, without the checks that it adds; its caches go where they may be lost."""
    if find_spec("ziglang") is None:
        return None
    cache = str(cache_folder("zig"))
    environment = {"ZIG_LOCAL_CACHE_DIR": cache, "ZIG_GLOBAL_CACHE_DIR": cache}
    asked = _asked((sys.executable, "-m", "ziglang", "cc"), environment)
    if asked is None:
        return None
    target = f"{platform.machine()}-linux-gnu" if sys.platform == "linux" else "native"
    command = (*asked.command, "-target", target, "-fno-sanitize=all")
    return Compiler(command, asked.version, environment, writes_files=True)


def _plain(text: str) -> str:
    """Name the target as clang does.

    zig writes the versions of a kernel and a library, and spells out what the processor lacks and likes.
    """
    if platform.machine() != "x86_64":
        return text

    def features(found: re.Match[str]) -> str:
        kept = [name for name in found[1].split(",") if name.startswith("+") and name not in _LIKED]
        return f'"target-features"="{",".join(kept)}"'

    return _FEATURES.sub(features, _TRIPLE.sub(r'\1"x86_64-pc-linux-gnu"', text))
