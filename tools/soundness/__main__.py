"""Whether the passes of the catalogue keep what programs mean: real and random programs, transformed and run.

Differential testing, as in the study of csmith (Yang et al., PLDI 2011): it finds wrong code, and does not
prove that there is none.

    PYTHONPATH=tools python -m soundness --programs 20 --lists 200

Each pass in five contexts, random lists of 2 to 20 passes, and the shipped coresets are tried on small
samples, on random programs of csmith, and on Lua's interpreter (Debian's package lua5.4) with a script. Each
answer is compared with that of the unoptimized program. The exit code is 1 if one is wrong; what shows
it again lies in the output folder, with the list made short.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, cycle
from pathlib import Path

from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings
from planish.levels.llvm.clang import Compiler, find_compiler
from planish.levels.llvm.execution import NotRunnableError
from planish.levels.llvm.passes.catalogue import PassElement
from planish.levels.llvm.passes.pipeline import available
from planish.levels.llvm.program import Running
from planish.train.corpus.programs import find_csmith, open_apt
from soundness.campaign import Tally, try_cases, write_table
from soundness.cases import Case, coreset_lists, hot_lists, in_contexts, random_lists
from soundness.subject import Form, Subject, compile_subject, csmith_program, samples

FORMS: tuple[Form, ...] = ("size", "typed", "size", "plain")
"""The forms of the random programs, in turn."""
SMALLEST, LARGEST = 500, 5000
"""Instructions of a random program: fewer try little, more take long."""
SCRIPT = Path(__file__).with_name("script.lua")
LUA, LUA_STREAM = "lua5.4", 1_000_000


@dataclass(frozen=True)
class Bench:
    """What everything is tried with."""

    bindings: Bindings
    compiler: Compiler
    elements: Sequence[PassElement]
    out: Path
    seed: int

    @property
    def small(self) -> str:
        """LLVM's pipeline for small code: from LLVM 23 on there is no default<Oz>."""
        texts = {element.text for element in self.elements}
        return "default<Oz>" if "default<Oz>" in texts else "default<O2>"


def main() -> int:
    options = _options()
    bindings = open_bindings(options.backend)
    compiler = find_compiler(int(bindings.version.partition(".")[0]))
    bench = Bench(bindings, compiler, available(bindings), options.out, options.seed)
    print(
        f"LLVM {bindings.version} ({bindings.name}), {compiler.name} {compiler.version},"
        f" {len(bench.elements)} passes"
    )
    options.out.mkdir(parents=True, exist_ok=True)
    total = Tally()
    if options.hot:
        _try_hot(bench, options, total)
        print(*write_table(total), sep="\n")
        return 1 if total.unsound else 0
    for form in ("size", "typed", "plain"):
        _try(samples(compiler, form), _cases(bench, options, 0), bench, total)
    programs, tried = _random_programs(bench, FORMS), 0
    while tried < options.programs:
        tried += _try(next(programs), _cases(bench, options, tried + 1), bench, total)
    if not (options.no_lua or options.coresets):
        _try_lua(bench, options, total)
    print(*write_table(total), sep="\n")
    return 1 if total.unsound else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=20, help="random programs of csmith")
    parser.add_argument("--lists", type=int, default=200, help="random lists for each program")
    parser.add_argument("--lua-lists", type=int, default=50, help="random lists for Lua")
    parser.add_argument("--hot", action="store_true", help="only the lists of hot functions, on code of -O3")
    parser.add_argument("--coresets", action="store_true", help="only the shipped coresets, without Lua")
    parser.add_argument("--no-lua", action="store_true", help="leave Lua out: it needs Debian's sources")
    parser.add_argument("--seed", type=int, default=0, help="of programs and lists")
    parser.add_argument("--backend", default="", help="libllvm or llvmlite")
    parser.add_argument("--out", type=Path, default=Path("out/soundness"), help="for reproducers")
    return parser.parse_args()


def _cases(bench: Bench, options: argparse.Namespace, stream: int) -> Iterator[Case]:
    if options.coresets:
        return coreset_lists(bench.elements)
    contexts = chain.from_iterable(in_contexts(element, bench.small) for element in bench.elements)
    return chain(
        contexts,
        coreset_lists(bench.elements),
        random_lists(bench.elements, options.lists, bench.seed, stream),
    )


def _try(subject: Subject, cases: Iterator[Case], bench: Bench, total: Tally) -> bool:
    """Try lists on a subject; return whether it could be run."""
    start = time.perf_counter()
    try:
        tally = try_cases(subject, cases, bench.bindings, bench.out)
    except NotRunnableError as error:
        print(f"{subject.name}: left out: {error}", flush=True)
        return False
    total.add(tally)
    print(
        f"{subject.name}: {tally.kinds.total()} lists, {tally.executed} different programs,"
        f" {len(tally.failures)} failures, {len(tally.unsound)} of them unsound,"
        f" {time.perf_counter() - start:.0f} s",
        flush=True,
    )
    return True


def _try_hot(bench: Bench, options: argparse.Namespace, total: Tally) -> None:
    """Try the lists of hot functions on samples and random programs."""
    _try(samples(bench.compiler, "fast"), hot_lists(options.lists, bench.seed, 0), bench, total)
    programs, tried = _random_programs(bench, ("fast",)), 0
    while tried < options.programs:
        tried += _try(next(programs), hot_lists(options.lists, bench.seed, tried + 1), bench, total)


def _random_programs(bench: Bench, of: Sequence[Form]) -> Iterator[Subject]:
    """Make random programs of a fair size; some that csmith makes do nearly nothing."""
    program, headers = find_csmith()
    forms = cycle(of)
    form = next(forms)
    for seed in count(bench.seed * 1_000_000 + 1):
        subject = csmith_program(program, headers, seed, bench.compiler, form)
        if _fair(subject, bench):
            yield subject
            form = next(forms)


def _fair(subject: Subject, bench: Bench) -> bool:
    module = bench.bindings.parse(subject.modules[0])
    before = module.instructions()
    module.run(bench.small)
    after = module.instructions()
    module.close()
    return SMALLEST <= before <= LARGEST and after >= SMALLEST // 5


def _try_lua(bench: Bench, options: argparse.Namespace, total: Tally) -> None:
    sources = _lua_sources(bench.out / "lua")
    running = Running(args=(str(SCRIPT.resolve()),))
    flags = ("-w", f"-I{bench.out / 'lua'}")
    sized, typed = (
        compile_subject("lua", sources, bench.compiler, form, flags, running) for form in ("size", "typed")
    )
    # A list takes a second here, so each pass has one context in each form.
    _try(sized, _in_context("after sroa", bench), bench, total)
    many = chain(
        coreset_lists(bench.elements),
        random_lists(bench.elements, options.lua_lists, bench.seed, LUA_STREAM),
        _in_context(f"before {bench.small}", bench),
    )
    _try(typed, many, bench, total)


def _in_context(context: str, bench: Bench) -> Iterator[Case]:
    cases = chain.from_iterable(in_contexts(element, bench.small) for element in bench.elements)
    return (case for case in cases if case.context == context)


def _lua_sources(folder: Path) -> list[Path]:
    """Fetch Lua's sources: the interpreter without its compiler luac."""
    tree = folder / "tree"
    if not tree.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _, version = open_apt(folder.with_name("apt")).unpack(LUA, folder)
        print(f"{LUA} {version}")
        # Debian's build writes this header.
        (folder / "lua5.4-deb-multiarch.h").write_text('#define DEB_HOST_MULTIARCH "here"\n')
    return sorted(path for path in (tree / "src").glob("*.c") if path.name != "luac.c")


if __name__ == "__main__":
    raise SystemExit(main())
