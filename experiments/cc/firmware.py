"""Firmware for two microcontrollers, built by clang, by `planish cc` and by gcc, and run under QEMU.

    PYTHONPATH=tools python experiments/cc/firmware.py [--evaluations 5000] [--only littlefs ...]
        [--targets thumbv7em rv32imac]

Each firmware is a project and a program in `firmware/` that uses it and prints what it computes. All is built
with -flto and --gc-sections, and linked with picolibc, by `clang -Oz`, `clang -Os`, `planish cc -Oz
--planish-objective flash`, and `gcc -Os`. The table has the bytes of flash of each program, and what planish
saves beside the better one of clang's. All four have to print the same.

The projects are Debian's sources, or folders in build/firmware/sources that are cloned from their
repositories where they are missing. The tools are those of `tools/fuzz_cc.py`, and lld.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fuzz_cc import TARGETS, Target, clang_link_words, run_program
from planish.core import cache_folder
from planish.levels.llvm.bindings.elf import loaded_bytes
from planish.train.corpus.programs import open_apt

ROOT = Path("build/firmware").absolute()
OWN = Path(__file__).parent / "firmware"
NAMES = "clang -Oz", "clang -Os", "planish", "gcc -Os"
PLANISH = [str(Path(sys.executable).parent / "planish-cc"), "--planish-objective=flash"]


@dataclass(frozen=True)
class Firmware:
    """A project, and how it is compiled.

    Args:
        name: of the program in `firmware/`, and of the folder of its headers.
        origin: the name of Debian's source package, or the URL of a repository and a tag.
        sources: patterns of its sources.
        words: for the compiler.
        folders: of headers, in the project.
        prepare: what is done in the project's folder once; `{own}` is the folder of our headers.
    """

    name: str
    origin: tuple[str, str]
    sources: tuple[str, ...]
    words: tuple[str, ...] = ()
    folders: tuple[str, ...] = (".",)
    prepare: str = "true"


DEBIAN = "Debian"
FIRMWARE = (
    Firmware(
        "littlefs",
        ("https://github.com/littlefs-project/littlefs", "v2.11.2"),
        ("lfs.c", "lfs_util.c"),
        ("-DLFS_NO_DEBUG", "-DLFS_NO_WARN", "-DLFS_NO_ERROR", "-DLFS_NO_ASSERT"),
    ),
    Firmware(
        "mbedtls",
        (DEBIAN, "mbedtls"),
        ("library/*.c",),
        ('-DMBEDTLS_CONFIG_FILE="firmware_config.h"',),
        ("include", "library"),
    ),
    Firmware(
        "lwip",
        (DEBIAN, "lwip"),
        ("src/core/*.c", "src/core/ipv4/*.c", "src/netif/ethernet.c"),
        folders=("src/include",),
    ),
    Firmware(
        "cmsis-dsp",
        ("https://github.com/ARM-software/CMSIS-DSP", "v1.16.2"),
        tuple(
            f"Source/{name}/{name}.c"
            for name in (
                *("BasicMathFunctions", "CommonTables", "ComplexMathFunctions", "ControllerFunctions"),
                *("FastMathFunctions", "FilteringFunctions", "MatrixFunctions", "StatisticsFunctions"),
                *("SupportFunctions", "TransformFunctions"),
            )
        ),
        ("-D__GNUC_PYTHON__", "-U__ARM_FEATURE_DSP"),  # it brings intrinsics of CMSIS-Core
        ("Include", "PrivateInclude"),
    ),
    Firmware(
        "micropython",
        ("https://github.com/micropython/micropython", "v1.26.1"),
        ("micropython_embed/*/*.c", "micropython_embed/*/*/*.c"),
        folders=("micropython_embed", "micropython_embed/port"),
        prepare="rm -rf build-embed && cp {own}/mpconfigport.h . && "
        "make -f ports/embed/embed.mk MICROPYTHON_TOP=$PWD "
        "PACKAGE_DIR=micropython_embed BUILD=build-embed CPP='clang-22 -E'",
    ),
)


class Builder:
    """Builds and runs one firmware for one target.

    Args:
        firmware, target: them.
        evaluations: budget of the search.
    """

    def __init__(self, firmware: Firmware, target: Target, evaluations: int) -> None:
        self._firmware, self._target = firmware, target
        self._folder = ROOT / "work" / f"{firmware.name}-{target.name}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._environment = {
            **os.environ,
            "PLANISH_EVALUATIONS": str(evaluations),
            "PLANISH_SECONDS": "",
            "PLANISH_CACHE": str(self._folder / "cache"),
        }

    def built(self, compiler: list[str]) -> tuple[int, str]:
        """Build a program; return its bytes of flash, and what it prints."""
        program = self._folder / "program"
        is_gcc = compiler[0] == self._target.link[0]
        words, link = list(self._target.clang), clang_link_words(self._target, self._folder)
        if is_gcc:
            words = [*self._target.link[1:]]
            link = [f"-Wl,--defsym={name}={value:#x}" for name, value in self._target.memory.items()]
        command = [
            *(
                *compiler,
                "-flto=1" if is_gcc else "-flto",
                *words,
                "-ffunction-sections",
                "-fdata-sections",
                "-w",
            ),
            *(*self._compiled(), *link, "-Wl,--gc-sections", "-o", str(program)),
        ]
        ended = subprocess.run(
            command, env=self._environment, cwd=self._folder, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{ended.stderr.strip()}")
        if ended.stderr.strip():
            print(ended.stderr.strip(), file=sys.stderr)
        return loaded_bytes(program.read_bytes()), run_program(self._target, program)

    def _compiled(self) -> list[str]:
        project, own = fetched(self._firmware), OWN / self._firmware.name
        found = [str(path) for pattern in self._firmware.sources for path in sorted(project.glob(pattern))]
        folders = [str(own), *(str(project / folder) for folder in self._firmware.folders)]
        return [
            *(f"-I{folder}" for folder in folders),
            *self._firmware.words,
            str(own.with_suffix(".c")),
            *found,
        ]


def fetched(firmware: Firmware) -> Path:
    """Return the folder of a project's sources, fetched once."""
    folder, (where, what) = ROOT / "sources" / firmware.name, firmware.origin
    tree, ready = folder / "tree", folder / "ready"
    if not ready.exists():
        folder.mkdir(parents=True, exist_ok=True)
        if not tree.exists() and where == DEBIAN:
            open_apt(cache_folder("apt")).unpack(what, folder)
        elif not tree.exists():
            clone = ["git", "clone", "--quiet", "--depth=1", "--branch", what, where, str(tree)]
            subprocess.run(clone, check=True)
        prepare = firmware.prepare.format(own=OWN / firmware.name)
        subprocess.run(prepare, shell=True, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        ready.touch()
    return tree


def main() -> int:
    """Print the table; return 1 where a program prints something else than it should."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=5000, help="budget of each search")
    parser.add_argument("--only", nargs="+", default=[each.name for each in FIRMWARE])
    parser.add_argument("--targets", nargs="+", default=["thumbv7em", "rv32imac"])
    options = parser.parse_args()
    print(f"| firmware | target | {' | '.join(NAMES)} | saved | answers |")
    print("|---|---|--:|--:|--:|--:|--:|---|", flush=True)
    ratios, wrong = list[float](), 0
    for target in TARGETS:
        for firmware in FIRMWARE:
            if target.name not in options.targets or firmware.name not in options.only:
                continue
            if target.missing:
                print(f"{target.name}: skipped: {target.missing} is not here")
                continue
            builder = Builder(firmware, target, options.evaluations)
            commands = ["clang-22", "-Oz"], ["clang-22", "-Os"], [*PLANISH, "-Oz"], [target.link[0], "-Os"]
            built = [builder.built(command) for command in commands]
            (oz, os_, planish, gcc), answers = [size for size, _ in built], [answer for _, answer in built]
            others = [name for name, answer in zip(NAMES, answers, strict=True) if answer != answers[0]]
            wrong += bool(others) or not answers[0]
            ratios.append(planish / min(oz, os_))
            print(
                f"| {firmware.name} | {target.name} | {oz:,} | {os_:,} | {planish:,} | {gcc:,} "
                f"| {100 * (1 - ratios[-1]):.2f} % | {f'other: {others}' if others else 'equal'} |",
                flush=True,
            )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0
    print(f"| geometric mean | | | | | | {100 * (1 - mean):.2f} % | |")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
