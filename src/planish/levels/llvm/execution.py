"""Running programs: linked by the C compiler of this machine, in processes of their own."""

from __future__ import annotations

import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

from planish.core import ProgramError, TargetError
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.program import OBJECTS, PROGRAM, Harness, LinkCommand, RunInput, Running
from planish.measure import Clocks
from planish.sandbox.confinement import end_orphans, launch, program_environment
from planish.sandbox.tool import run_tool

OUTPUT_MOST = 64 << 20
LIMIT_S = 10.0
"""Seconds that the unoptimized program may run when its answer is found."""
_LINK_S = 60.0
_PIECE = 1 << 16
_SAID = 2000


def _processor_ns() -> int:
    """Return the processor time of this process and of the children that it has waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + round((ended.ru_utime + ended.ru_stime) * 1e9)


CLOCKS = Clocks(processor=_processor_ns)
"""For programs that run in processes of their own."""


class NotRunnableError(ProgramError):
    """The program cannot be linked, does not end, or its answers differ."""


class EndedError(Exception):
    """A program that was run again ended in another way than before, or with another answer.

    Args:
        code: how; negative for a signal.
        detail: what is wrong.
    """

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail


@dataclass(frozen=True)
class RunAnswer:
    """The answer of a run.

    Args:
        code: the exit code; negative for a signal.
        output: standard output.
        seconds: how long it took.
    """

    code: int
    output: bytes
    seconds: float

    def differs(self, expected: RunAnswer) -> str:
        """Return how this answer is not the expected one; empty where it is."""
        if self.code != expected.code:
            return f"{_ending(self.code)}, and not {_ending(expected.code)}"
        if self.output != expected.output:
            pairs = enumerate(zip(self.output, expected.output, strict=False))
            shorter = min(len(self.output), len(expected.output))
            common = next((index for index, (one, other) in pairs if one != other), shorter)
            return f"the output differs from byte {common + 1:,} on"
        return ""


class Runner:
    """Links modules of one program and runs them.

    Args:
        running: how the program is run.
        bindings: compiles a harness of IR.
        link: how the program is linked; None: by the C compiler of this machine, with what `running` names.

    Raises:
        TargetError: there is no C compiler to link with.
        ProgramError: the harness does not compile.
    """

    def __init__(self, running: Running, bindings: Bindings, link: LinkCommand | None = None) -> None:
        self._running = running
        self._link = link or LinkCommand(find_linker(), (OBJECTS, "-o", PROGRAM, *running.link, "-lm"))
        self._linker = self._link.compiler
        self._others = [compile_harness(running.harness, self._linker, bindings)] if running.harness else []

    @property
    def compiler(self) -> tuple[str, ...]:
        """Return the compiler, which also links."""
        return self._linker

    @contextmanager
    def executable(self, *codes: bytes) -> Generator[Path]:
        """Link objects to one program; the executable is there within the context alone.

        Raises:
            NotRunnableError: it cannot be linked.
        """
        with tempfile.TemporaryDirectory(prefix="planish-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            objects = [folder / f"{number}.o" for number in range(len(codes) + len(self._others))]
            for path, data in zip(objects, [*codes, *self._others], strict=True):
                path.write_bytes(data)
            program = folder / "program"
            _call(self._linker, self._link.filled(objects, program), "linked", folder)
            yield program

    @property
    def inputs(self) -> Sequence[RunInput]:
        """Return the inputs on which answers are compared; the first is the one that is timed."""
        return self._running.inputs

    def answer(
        self, program: Path, seconds: float = LIMIT_S, most: int = OUTPUT_MOST, given: RunInput | None = None
    ) -> RunAnswer:
        """Run an executable once, in its folder; with the first input, or another one.

        Raises:
            NotRunnableError: it runs for longer, or writes more bytes than `most`.
        """
        return launch(partial(self._answer, program, seconds, most, given or self.inputs[0]))

    def _answer(self, program: Path, seconds: float, most: int, given: RunInput) -> RunAnswer:
        start = time.monotonic()
        with self._started(program, subprocess.PIPE, given) as process:
            try:
                output = _read(process, start + seconds, most)
                # It has closed its output: then it ends in a moment.
                code = process.wait(max(0.01, start + seconds - time.monotonic()))
            except (NotRunnableError, subprocess.TimeoutExpired) as error:
                process.kill()
                if isinstance(error, NotRunnableError):
                    raise
                raise NotRunnableError(f"it did not end within {seconds:g} s") from error
            finally:
                end_orphans()
        return RunAnswer(code, output, time.monotonic() - start)

    def repeat(self, program: Path, code: int, calls: int) -> None:
        """Run an executable a number of times, one after the other; what it writes is lost.

        Raises:
            EndedError: it ends with another code; then its time is meaningless.
        """
        launch(partial(self._repeat, program, code, calls))

    def _repeat(self, program: Path, code: int, calls: int) -> None:
        for _ in range(calls):
            with self._started(program, subprocess.DEVNULL, self.inputs[0]) as process:
                process.wait()
            if process.returncode != code:
                raise EndedError(process.returncode, _ending(process.returncode))
        end_orphans()

    def repeat_compared(self, program: Path, expected: RunAnswer, seconds: float, calls: int) -> None:
        """Run an executable a number of times, and compare each answer.

        It takes a little longer than `repeat`, since what the program writes is read.

        Raises:
            EndedError: an answer differs, or takes longer than `seconds`.
        """
        for _ in range(calls):
            try:
                answer = self.answer(program, seconds, len(expected.output) + _PIECE)
            except NotRunnableError as error:
                raise EndedError(0, error.message) from error
            if wrong := answer.differs(expected):
                raise EndedError(answer.code, wrong)

    @contextmanager
    def _started(self, program: Path, output: int, given: RunInput) -> Generator[subprocess.Popen[bytes]]:
        words = [str(program), *given.args]
        # A file, not a pipe: no thread has to write to it while the program runs.
        with tempfile.TemporaryFile() as stdin:
            stdin.write(given.stdin)
            stdin.seek(0)
            with subprocess.Popen(
                words,
                stdin=stdin,
                stdout=output,
                stderr=subprocess.DEVNULL,
                cwd=program.parent,
                env=program_environment(),
            ) as process:
                yield process


def reference_answers(code: bytes, runner: Runner) -> list[RunAnswer]:
    """Run the unoptimized program twice with each input, and return its answers.

    Raises:
        NotRunnableError: it cannot be linked or ended, or its two answers differ.
    """
    with runner.executable(code) as path:
        return [_reference_answer(runner, path, given) for given in runner.inputs]


def _reference_answer(runner: Runner, path: Path, given: RunInput) -> RunAnswer:
    first, second = (runner.answer(path, given=given) for _ in range(2))
    if wrong := second.differs(first):
        raise NotRunnableError(f"two runs of the unoptimized program differ: {wrong}")
    # The lesser: the first run may have waited for the disk.
    return RunAnswer(first.code, first.output, min(first.seconds, second.seconds))


@cache
def find_linker() -> tuple[str, ...]:
    """Find a C compiler to link with: CC, else cc, gcc, clang, or the one in the `ziglang` wheel.

    CC may have arguments, as in `CC="g++ -pthread"`.

    Raises:
        TargetError: there is none, or CC has a quote that does not end.
    """
    named = os.environ.get("CC", "")
    try:
        # As a shell splits it; the path of a program may have spaces.
        own = [named] if shutil.which(named) else shlex.split(named)
    except ValueError as error:
        raise TargetError(f"CC={named} is not a valid command: {error}", "Fix CC, or unset it.") from error
    for words in (own, ["cc"], ["gcc"], ["clang"]):
        if words and (path := shutil.which(words[0])):
            return (path, *words[1:])
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise TargetError("no C compiler to link with is found", "Install one: gcc, clang, or the wheel ziglang.")


def linker_folders() -> tuple[str, ...]:
    """Return the folders that linking reads: the C compiler's, and the one above; none without a compiler."""
    try:
        folder = Path(find_linker()[0]).resolve().parent
    except TargetError:
        return ()
    around = folder.parent
    # Never a whole home or root.
    return (str(folder),) if around in (Path.home(), Path("/")) else (str(folder), str(around))


def compile_harness(harness: Harness, linker: Sequence[str], bindings: Bindings) -> bytes:
    """Compile what is linked to a program.

    Raises:
        NotRunnableError: it does not compile.
        IRError: it is malformed.
    """
    if harness.kind == "ll":
        with closing(bindings.parse(harness.text, "the harness")) as module:
            return module.object_code()
    with tempfile.TemporaryDirectory(prefix="planish-", ignore_cleanup_errors=True) as name:
        source, code = Path(name) / "harness.c", Path(name) / "harness.o"
        source.write_text(harness.text)
        # A C++ compiler would give its functions other names.
        _call(linker, ["-x", "c", "-O1", "-c", str(source), "-o", str(code)], "compiled", Path(name))
        return code.read_bytes()


def _call(linker: Sequence[str], words: Sequence[str], what: str, folder: Path) -> None:
    try:
        # Who runs programs is confined, and cannot write to the caches that compilers have elsewhere.
        caches = {name: tempfile.gettempdir() for name in ("ZIG_LOCAL_CACHE_DIR", "ZIG_GLOBAL_CACHE_DIR")}
        ran = run_tool([*linker, *words], seconds=_LINK_S, variables={**caches, "CCACHE_DISABLE": "1"})
    except TimeoutError as error:
        why = f"{linker[0]} did not end within {_LINK_S:g} s"
        raise NotRunnableError(f"it cannot be {what}: {why}") from error
    if ran.code:
        said = ran.message.replace(f"{folder}/", "").strip()[:_SAID]
        raise NotRunnableError(f"it cannot be {what}: {' '.join(said.split())}")


def _read(process: subprocess.Popen[bytes], end: float, most: int) -> bytes:
    """Take all that a process writes, until it closes its output."""
    assert process.stdout is not None
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(max(0.0, end - time.monotonic())):
            piece = os.read(process.stdout.fileno(), _PIECE)
            output += piece
            if not piece:
                return bytes(output)
            if len(output) > most:
                raise NotRunnableError(f"it writes more than {most >> 20} MiB")
    raise subprocess.TimeoutExpired(process.args, 0)


def _ending(code: int) -> str:
    return f"killed by '{signal.strsignal(-code)}'" if code < 0 else f"exit code {code}"
