"""The clang that compiles, and running it as a child: its front end, into memory, and the whole of it."""

from __future__ import annotations

import os
import sys

from planish.cc.arguments import Invocation, Source, grouped

VARIABLE = "PLANISH_CLANG"
MAJOR = 22
"""The LLVM that is looked for first: that of the libraries which planish is tested with."""
_NAMES = (f"clang-{MAJOR}", "clang", *(f"clang-{major}" for major in range(MAJOR - 1, 16, -1)))


class Compiler:
    """A clang.

    Attributes:
        command: the program, and what it always needs: to be a C++ compiler, for instance.
        path: the program's path.
        installation: names the version of its libraries, and what its configuration files say.
    """

    __slots__ = ("command", "installation", "path")

    def __init__(self, path: str, more: list[str]) -> None:
        self.path, self.command, self.installation = path, [path, *more], ""

    @property
    def identity(self) -> str:
        """The fingerprint of the compiler: it differs after an upgrade and with other options."""
        found = os.stat(self.path)
        program = f"{os.path.realpath(self.path)}\n{found.st_size}\n{found.st_mtime_ns}"
        return f"{program}\n{self.command[1:]}{self.installation}"

    def replace_process(self, words: list[str]) -> None:
        """Become clang: its exit code, its signals and its output are this process's then.

        Raises:
            OSError: it does not start.
        """
        os.execv(self.path, [*self.command, *words])


def find_compiler(*, plus: bool) -> Compiler | None:
    """Find the clang that PLANISH_CLANG names, else one on PATH, planish's LLVM first; None: there is none.

    Args:
        plus: whether it shall compile and link C++.
    """
    mode = ["--driver-mode=g++"] if plus else []
    if given := os.environ.get(VARIABLE):
        named = [given] if os.path.isfile(given) else given.split()  # a path may have spaces
        path = _on_path(named[0]) if named else None
        return Compiler(path, [*named[1:], *mode]) if path else None
    for name in _NAMES:
        if path := _on_path(name):
            return Compiler(path, mode)
    return None


def _on_path(name: str) -> str | None:
    if "/" in name:
        return name if os.access(name, os.X_OK) else None
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


CODE_ONLY = ("-Xclang", "-disable-llvm-passes", "-Qunused-arguments", "-w", "-c", "-x", "ir", "-")
"""The words that make code of bitcode on standard input, as clang would of its own."""
# What follows from a source before anything is optimized: with TBAA and lifetimes, as -Oz has them.
_FRONT_END = ("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c")


class Unit:
    """One source that is compiled to one object.

    Attributes:
        compiler: with which.
        options: all words of the command line but the inputs, what -o names, and -c.
        source: its path.
        output: the object.
        belongs_to: what it is made for: the same, or the program that it is linked into.
        words: for clang, to make the object.
        dependency_file: where clang writes what the object depends on; None: it does not.
        host: this machine's processor where code is made for it (-march=native); empty where it is not.
    """

    __slots__ = (
        *("_made", "belongs_to", "compiler", "dependency_file", "host", "options", "output", "source"),
        "words",
    )

    def __init__(
        self, compiler: Compiler, invocation: Invocation, source: Source, output: str, belongs_to: str
    ) -> None:
        self.compiler, self.source, self.output, self.belongs_to = compiler, source.path, output, belongs_to
        colors = ["-fcolor-diagnostics"] if sys.stderr.isatty() else []  # it is not clang's own here
        self.options = [*colors, *_options(invocation, source)]
        self.words = [*self.options, "-c", "-o", output]
        if not invocation.compiles:
            self.words.append("-Qunused-arguments")  # what is for the linker
        self.host = _host() if any(word.endswith("=native") for word in self.options) else ""
        self.dependency_file: str | None = None
        self._made: list[str] = []  # the options on dependencies that clang derives where it writes an object
        if invocation.makes_dependencies:
            self.dependency_file = invocation.dependency_file or os.path.splitext(output)[0] + ".d"
            file = [] if invocation.dependency_file else ["-MF", self.dependency_file]
            self._made = file if invocation.has_target else [*file, "-MQ", output]

    @property
    def front_end(self) -> list[str]:
        """The words that make unoptimized bitcode of it, on standard output, and the same dependencies."""
        return [*self.options, *_FRONT_END, "-o", "-", "-Qunused-arguments", *self._made]


def _options(invocation: Invocation, source: Source) -> list[str]:
    """Leave out what other inputs are named, and the output."""
    others = {other.index for other in invocation.sources} - {source.index}
    if not invocation.compiles:
        others |= invocation.linked
    return [
        word
        for index, group in grouped(invocation.words)
        if index not in others and group[0] != "-c" and not group[0].startswith("-o")
        for word in group
    ]


def _host() -> str:
    """Describe this machine's first processor as the kernel does, without what varies."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first = file.read(1 << 14).partition("\n\n")[0]
    return "\n".join(line for line in first.splitlines() if "MHz" not in line and "apic" not in line)


class CompletedProcess:
    """A process that ended: its exit code, negative for a signal, what it wrote, and what it said."""

    __slots__ = ("code", "messages", "written")

    def __init__(self, code: int, written: bytes, messages: bytes) -> None:
        self.code, self.written, self.messages = code, written, messages


def run(command: list[str], given: bytes = b"", **variables: str) -> CompletedProcess:
    """Run a program to its end. What it writes and says is kept in memory.

    It does what `planish.sandbox.tool.run_tool` does, without its imports; see `object_cache`.

    Args:
        command: the program's path, and its arguments.
        given: its standard input; without it, it has this process's.
        variables: of its environment, besides this process's.

    Raises:
        OSError: it does not start.
    """
    # Files in memory: a pipe that is not read would fill while the program is waited for.
    files = [open(os.memfd_create("planish"), "w+b") for _ in range(3)]  # noqa: SIM115  (closed below)
    try:
        files[0].write(given)
        for file in files:
            file.seek(0)
        moves = [(os.POSIX_SPAWN_DUP2, file.fileno(), its) for its, file in enumerate(files) if its or given]
        pid = os.posix_spawn(command[0], command, {**os.environ, **variables}, file_actions=moves)
        from planish.cc.interrupts import Stoppable  # here: clang is at work meanwhile

        with Stoppable():
            code = wait(pid)
        for file in files:
            file.seek(0)
        return CompletedProcess(code, files[1].read(), files[2].read())
    finally:
        for file in files:
            file.close()


def wait(pid: int) -> int:
    """Wait for a child; where this process is to stop meanwhile, the child is ended first."""
    try:
        # It is not buried yet: Ctrl-C ends it at the same moment, and its number must still be its own then.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except BaseException:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        raise
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_file(path: bytes) -> bytes | None:
    """Return the content of a file; None where it cannot be read."""
    try:
        with open(path, "rb", 0) as file:
            return file.read()
    except OSError:
        return None


def shell_code(ended: int) -> int:
    """Return an exit code as a shell does: a signal is 128 and its number."""
    return ended if ended >= 0 else 128 - ended
