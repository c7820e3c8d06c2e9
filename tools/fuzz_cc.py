"""Random programs of csmith, compiled by `planish cc` for several processors, and run under QEMU.

    python tools/fuzz_cc.py --programs 200 [--targets thumbv6m rv32imac] [--evaluations 60] [--lto]

Each answer is compared with that of the program as clang -O0 makes it for the same processor. Programs
for microcontrollers are linked with picolibc by GCC of the target, or with --lto by lld, and print by
semihosting. The last line of each target has the bytes that objects (with --lto programs) of clang -Oz and of
planish cc load. The exit code is 1 if an answer is wrong; the source is kept in the output folder. With
--state FILE the same command continues an interrupted campaign, and more programs extend it.

The tools are Debian's: csmith, clang-22, gcc-arm-none-eabi, picolibc-arm-none-eabi, qemu-system-arm,
gcc-riscv64-unknown-elf, picolibc-riscv64-unknown-elf, qemu-system-misc, gcc-aarch64-linux-gnu, qemu-user. A
target without them is skipped.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from campaign import State
from planish.core import PlanishError
from planish.levels.llvm.bindings.elf import loaded_bytes
from planish.train.corpus.programs import find_csmith, random_program

_CC = [sys.executable, "-c", "from planish.cc.command import cc; cc()", "--planish-strict"]
CSMITH_OPTIONS = (
    *("--no-float", "--max-funcs", "6", "--max-block-depth", "3", "--max-block-size", "3"),
    *("--max-expr-complexity", "5"),
)
_LIMIT_S, _CLOCK = 20, 60
"""Seconds of the processor that a program may take, and how many each may take by the clock."""
_SEMIHOSTING = (
    "-nographic",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-semihosting-config",
    "enable=on,target=native",
)
_PICOLIBC = ("--specs=picolibc.specs", "--oslib=semihost", "--crt0=hosted")
_ARM_MEMORY = {"__flash": 0, "__flash_size": 0x400000, "__ram": 0x20000000, "__ram_size": 0x400000}
_VIRT_MEMORY = {
    "__flash": 0x80000000,
    "__flash_size": 0x400000,
    "__ram": 0x80400000,
    "__ram_size": 0x400000,
}


@dataclass(frozen=True)
class Target:
    """A processor: how programs are compiled for it, linked, and run.

    Args:
        name: for people.
        clang: options of clang.
        link: the command of the linker, before the object.
        memory: symbols of picolibc's linker script.
        run: the command that runs a program, before its path.
    """

    name: str
    clang: tuple[str, ...]
    link: tuple[str, ...]
    memory: dict[str, int]
    run: tuple[str, ...]

    @property
    def missing(self) -> str:
        """Name a tool that is not here; empty where all are."""
        return next((tool for tool in (self.link[0], *self.run[:1]) if not shutil.which(tool)), "")


def _arm(name: str, machine: str, *cpu: str) -> Target:
    headers = "/usr/lib/picolibc/arm-none-eabi/include"
    return Target(
        name,
        (f"--target={name}-none-eabi", *cpu, "-mfloat-abi=soft", "-fshort-enums", "-isystem", headers),
        ("arm-none-eabi-gcc", *cpu, "-mthumb", *_PICOLIBC),
        _ARM_MEMORY,
        ("qemu-system-arm", "-M", machine, *_SEMIHOSTING, "-kernel"),
    )


_RV32 = ("-march=rv32imac", "-mabi=ilp32")
TARGETS = (
    Target("host", (), ("clang-22",), {}, ()),
    Target(
        "aarch64",
        ("--target=aarch64-linux-gnu",),
        ("aarch64-linux-gnu-gcc", "-static"),
        {},
        ("qemu-aarch64",),
    ),
    _arm("thumbv6m", "mps2-an385", "-mcpu=cortex-m0"),
    _arm("thumbv7em", "mps2-an386", "-mcpu=cortex-m4"),
    Target(
        "rv32imac",
        ("--target=riscv32-unknown-elf", *_RV32, "-isystem", "/usr/lib/picolibc/riscv64-unknown-elf/include"),
        ("riscv64-unknown-elf-gcc", *_RV32, *_PICOLIBC),
        _VIRT_MEMORY,
        ("qemu-system-riscv32", "-M", "virt", "-bios", "none", *_SEMIHOSTING, "-kernel"),
    ),
)


def clang_link_words(target: Target, folder: Path) -> list[str]:
    """Return the words by which clang links a program for a target with -flto: by lld, with picolibc.

    Args:
        target: it.
        folder: for the linker script: lld does not know one attribute, and places `.tbss` by itself.
    """
    if not target.memory:
        return ["-fuse-ld=lld", *target.link[1:]]
    gcc, *words = target.link
    library = Path("/usr/lib/picolibc") / gcc.removesuffix("-gcc") / "lib"

    def named(option: str) -> str:
        found = subprocess.run([gcc, *words, option], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    own, runtime = library / named("-print-multi-directory"), named("-print-libgcc-file-name")
    script = folder / "picolibc.ld"
    text = (library / "picolibc.ld").read_text()
    script.write_text(text.replace("ALIGN_WITH_INPUT", "").replace(". = ADDR(.tbss);", ""))
    return [
        *("-fuse-ld=lld", "-nostdlib", f"-Wl,-T,{script}", f"-L{own}", str(own / "crt0-hosted.o")),
        *(f"-Wl,--defsym={name}={value:#x}" for name, value in target.memory.items()),
        *("-lc", "-lsemihost", runtime),
    ]


def run_program(target: Target, program: Path) -> str:
    """Run a program; return its exit code and what it prints, empty where it does not end.

    Seconds are of the processor: on a busy machine a program that ends may take many more by the clock.
    """
    limited = ("prlimit", f"--cpu={_LIMIT_S}", *target.run, str(program))
    try:
        ended = subprocess.run(
            limited, stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S * _CLOCK, check=False
        )
    except subprocess.TimeoutExpired:
        return ""
    if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return ""
    return f"{ended.returncode} {ended.stdout.decode()}{ended.stderr.decode()}"


@dataclass(frozen=True)
class Result:
    """What became of a program.

    Args:
        expected, answer: what it prints, as clang -O0 and as planish cc made it; empty where it does not end.
        clang, planish: bytes that the object loads, by clang -Oz and by planish cc.
    """

    expected: str
    answer: str
    clang: int
    planish: int


class Fuzzer:
    """Compiles and runs programs for one target.

    Args:
        target: it.
        folder: for files.
        evaluations: budget of each search.
        lto: whether the search is for the program, when it is linked.
    """

    def __init__(self, target: Target, folder: Path, evaluations: int, *, lto: bool = False) -> None:
        self._target, self._folder, self._lto = target, folder, lto
        self._environment = {
            **os.environ,
            "PLANISH_EVALUATIONS": str(evaluations),
            "PLANISH_CACHE": str(folder / "cache"),
        }
        self._environment.pop("PLANISH_SECONDS", None)
        folder.mkdir(parents=True, exist_ok=True)

    def try_program(self, source: str, headers: Path) -> Result | None:
        """Compile a program in each way, and run it; None where it does not end as clang -O0 makes it."""
        path = self._folder / "program.c"
        path.write_text(source)
        words = [*self._target.clang, "-w", f"-I{headers}", str(path)]
        expected = self._answer(["clang-22", "-O0", *words])
        if not expected:
            return None
        clang, planish = ["clang-22", "-Oz", *words], [*_CC, "--planish-objective", "flash", "-Oz", *words]
        if self._lto:
            sizes = [self._linked(command) for command in (clang, planish)]
            answer = run_program(self._target, self._folder / "program")
        else:
            sizes = [loaded_bytes(self._compiled(command)) for command in (clang, planish)]
            answer = self._answer(planish)
        return Result(expected, answer, *sizes)

    def keep(self, source: str, seed: int) -> Path:
        """Keep a program whose answer is wrong; return its path."""
        path = self._folder / f"wrong{seed}.c"
        path.write_text(source)
        return path

    def _linked(self, command: Sequence[str]) -> int:
        program = self._folder / "program"
        link = clang_link_words(self._target, self._folder)
        self._do([*command, "-flto", *link, "-Wl,--gc-sections", "-o", str(program)])
        return loaded_bytes(program.read_bytes())

    def _compiled(self, command: Sequence[str]) -> bytes:
        made = self._folder / "program.o"
        self._do([*command, "-c", "-o", str(made)])
        return made.read_bytes()

    def _answer(self, command: Sequence[str]) -> str:
        self._compiled(command)
        memory = [f"-Wl,--defsym={name}={value:#x}" for name, value in self._target.memory.items()]
        program = self._folder / "program"
        self._do([*self._target.link, str(self._folder / "program.o"), *memory, "-o", str(program)])
        return run_program(self._target, program)

    def _do(self, command: Sequence[str]) -> None:
        ended = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if ended.returncode:
            raise PlanishError(f"{' '.join(command)}: {ended.stderr.strip()}")


def try_programs(fuzzer: Fuzzer, state: State, programs: int) -> Iterator[str]:
    """Try programs until so many were tried, and yield a line about each wrong answer; count in the state."""
    csmith, headers = find_csmith()
    counts = state.counts
    for seed in count(state.first):
        if counts["right"] + counts["wrong"] >= programs:
            break
        source = random_program(csmith, seed, CSMITH_OPTIONS)
        if (result := fuzzer.try_program(source, headers)) is not None:
            is_right = result.answer == result.expected
            counts["right" if is_right else "wrong"] += 1
            counts["clang"] += result.clang
            counts["planish"] += result.planish
            if not is_right:
                kept = fuzzer.keep(source, seed)
                yield f"seed {seed}: {result.answer!r} and not {result.expected!r}: {kept}"
        state.save(seed + 1)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=200, help="random programs for each target")
    parser.add_argument("--targets", nargs="*", default=[target.name for target in TARGETS])
    parser.add_argument("--evaluations", type=int, default=60, help="budget of each search")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--lto", action="store_true", help="search for whole programs")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz-cc"), help="for files")
    parser.add_argument("--state", type=Path, help="file of counts: the same command continues from there")
    options = parser.parse_args()
    wrong = 0
    for target in TARGETS:
        if target.name not in options.targets:
            continue
        if target.missing:
            print(f"{target.name}: skipped: {target.missing} is not here")
            continue
        folder, kind = options.out.absolute() / target.name, "lto" if options.lto else "objects"
        fuzzer = Fuzzer(target, folder, options.evaluations, lto=options.lto)
        name = f"{target.name} {kind} {options.evaluations} {options.seed}"
        state = State(options.state, name, options.seed)
        for line in try_programs(fuzzer, state, options.programs):
            print(f"{target.name}: {line}", flush=True)
        counts = state.counts
        right, failed, clang, planish = (counts[each] for each in ("right", "wrong", "clang", "planish"))
        share = 100 * (planish / clang - 1) if clang else 0.0
        print(
            f"{target.name}: {right} right, {failed} wrong; {clang:,} -> {planish:,} bytes ({share:+.2f} %)",
            flush=True,
        )
        wrong += failed
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
