"""C source as a candidate: what may be submitted, and what was tried on harnesses that measure code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from planish.core import (
    Candidate,
    Executor,
    Failed,
    Measured,
    Outcome,
    PlanishError,
    TargetError,
    Task,
    evaluate,
)
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.c_source import CSource
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.passes.pipeline import pass_step
from planish.levels.llvm.source import compiler_of
from planish.measure.executors import LocalExecutor

KERNEL = """
static unsigned twice(unsigned x) { return x + x; }
unsigned mixed(const unsigned *a, unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) sum += twice(a[i]) ^ i;
  return sum;
}
unsigned other(unsigned x) { return x * 3; }
"""
HARNESS = """
#include <stdio.h>
#include <stdlib.h>
unsigned mixed(const unsigned *a, unsigned n);
unsigned other(unsigned x);
int main(int argc, char **argv) {
  unsigned seed = argc > 1 ? atoi(argv[1]) : 1, a[1000];
  for (int i = 0; i < 1000; i++) a[i] = seed = seed * 1664525u + 1013904223u;
  printf("%u\\n", other(mixed(a, 1000)));
}
"""
HEAD = "unsigned mixed(const unsigned *a, unsigned n) "
LOOP = "unsigned sum = 0; for (unsigned i = 0; i < n; i++) sum += (a[i] << 1) ^ i; return sum;"
HONEST = f"#include <stdint.h>\n{HEAD}{{ {LOOP} }}\n"

CHEATS = {
    "another main": (f"{HONEST} int main(void) {{ return 0; }}", "defines 'main'"),
    "a constructor": (
        f"{HONEST} __attribute__((constructor)) static void f(void) {{}}",
        "runs by itself|constr",
    ),
    "a patched timer": (
        f"{HONEST} int clock_gettime(int c, void *t) {{ return 0; }}",
        "defines 'clock_gettime'",
    ),
    "a patched function of the library": (
        f"{HONEST} int printf(const char *f, ...) {{ return 0; }}",
        "'printf'",
    ),
    "assembly": (f'{HEAD}{{ __asm__("syscall"); {LOOP} }}', "word '__asm__'"),
    "assembly by a macro": (f'#define J(a, b) a##b\n{HEAD}{{ J(__as, m__)("syscall"); {LOOP} }}', "assembly"),
    "code in a section of data": (
        f'__attribute__((section(".text"))) const char c[] = {{15, 5}};{HEAD}{{ {LOOP} }}',
        "section|defines 'c'",
    ),
    "a file of the machine": (f'#include "/etc/passwd"\n{HONEST}', "word 'include'"),
    "a file, in two lines": (f'#inc\\\nlude "/etc/passwd"\n{HONEST}', "word 'include'"),
    "a file, by a digraph": (f'%:include "/etc/passwd"\n{HONEST}', "word 'include'"),
    "a file, behind a comment": (f'/*\n#pragma unroll */ #include "/etc/passwd"\n{HONEST}', "word 'pragma'"),
    "a file, embedded": (f'static const char c[] = {{\n#embed "/etc/passwd"\n}};{HONEST}', "word 'embed'"),
    "whether a file exists": (f'#if __has_include("/root/x")\n#endif\n{HONEST}', "word '__has_include'"),
    "writing the answer": (
        f"long write(int, const void *, long); {HEAD}{{ write(1, a, 4); {LOOP} }}",
        "calls 'write'",
    ),
    "leaving early": (f"#include <stdlib.h>\n{HEAD}{{ exit(0); }}", "calls 'exit'"),
    "work on another thread": (
        f"int pthread_create(void *, void *, void *, void *); {HEAD}{{ pthread_create(0, 0, 0, 0); {LOOP} }}",
        "calls 'pthread_create'",
    ),
    "work in another process": (f"int fork(void); {HEAD}{{ fork(); {LOOP} }}", "calls 'fork'"),
    "a function found at run time": (
        f"void *dlsym(void *, const char *); {HEAD}{{ dlsym(0, 0); {LOOP} }}",
        "'dlsym'",
    ),
    "answers kept between calls": (
        f"{HEAD}{{ static unsigned c; if (c) return c; {LOOP[:-12]} return c = sum; }}",
        "var",
    ),
    "answers kept by a thread": (f"{HEAD}{{ static __thread unsigned c; c++; {LOOP} }}", "variables"),
    "a function chosen when it is loaded": (
        f'static void *pick(void) {{ return 0; }} {HEAD} __attribute__((ifunc("pick")));',
        "ifunc|compile",
    ),
    "a stub": (f"{HEAD}{{ return 0; }}", "output differs"),
    "less work": (f"{HEAD}{{ n /= 2; {LOOP} }}", "output differs"),
    "the answer of the first input": (
        f"{HEAD}{{ {LOOP.replace('return sum;', '')} return a[0] == 1020562323u ? sum : sum + 1; }}",
        "output differs",
    ),
    "an endless loop": (f"{HEAD}{{ volatile int x = 1; while (x); return 0; }}", "did not end"),
    "a crash": (f"{HEAD}{{ *(volatile int *)8 = 1; return 0; }}", "Segmentation|killed"),
    "too much text": (f"/*{'x' * 70_000}*/ {HONEST}", "bytes"),
    "a zero byte": (f"{HONEST}\0", "zero byte"),
    "half a character": (f"{HONEST} // \ud800", "not valid text"),
    "nothing": ("", "replaces no function"),
    "no C": ("def f(): pass", "does not compile"),
    "what is internal": ("unsigned twice(unsigned x) { return x << 1; }", "defines 'twice'"),
}


@pytest.fixture(scope="module", autouse=True)
def _compiler() -> None:
    try:
        compiler_of(open_bindings(""))
    except TargetError as error:
        pytest.skip(f"needs a C compiler: {error}")


def task_in(folder: Path, objective: str = "instructions", **options: str) -> Task:
    """Return the task of the kernel, which is run by a harness on two inputs."""
    names = {"harness": folder / "harness.c", "cases": folder / "cases.txt"}
    (folder / "kernel.c").write_text(KERNEL)
    names["harness"].write_text(HARNESS)
    names["cases"].write_text("12345\n\n77 < harness.c\n".replace("harness.c", str(names["harness"])))
    level = LlvmLevel()
    given = {**{name: str(path) for name, path in names.items()}, "args": "4", **options}
    program = level.load(str(folder / "kernel.c"), given)
    objectives = (level.objectives[objective],)
    program = level.specialize(program, objectives)
    return Task(program, level.target(program, 1), objectives, level.version)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Task, Executor]]:
    task = task_in(tmp_path_factory.mktemp("kernel"))
    with LocalExecutor(LlvmLevel().evaluator(task)) as executor:
        yield task, executor


@pytest.fixture(scope="module")
def outcomes(counted: tuple[Task, Executor]) -> dict[str, Outcome]:
    names = {Candidate((CSource(text),)).hash: name for name, (text, _) in CHEATS.items()}
    candidates = [Candidate((CSource(text),)) for text, _ in CHEATS.values()]
    return {names[each.candidate.hash]: each.outcome for each in evaluate(counted[1], candidates)}


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_fails(outcomes: dict[str, Outcome], name: str) -> None:
    outcome = outcomes[name]
    assert isinstance(outcome, Failed), outcome
    assert re.search(CHEATS[name][1], outcome.detail), outcome


def test_honest_functions_are_measured(counted: tuple[Task, Executor]) -> None:
    task, executor = counted
    honest, unrolled = (
        Candidate((CSource(HONEST),)),
        Candidate((CSource(HONEST), pass_step("sroa"))),
    )
    baseline = LlvmLevel().baseline(task)
    found = {each.candidate: each.outcome for each in evaluate(executor, [honest, unrolled, baseline])}
    assert all(isinstance(each, Measured) for each in found.values()), found


def test_a_source_is_described_and_exported(counted: tuple[Task, Executor], tmp_path: Path) -> None:
    task, _ = counted
    candidate = LlvmLevel().candidate_of_text(task, HONEST)
    assert LlvmLevel().describe(task, candidate)["source"] == HONEST
    files = LlvmLevel().export(task, candidate, tmp_path / "out")
    assert (tmp_path / "out/source.c").read_text() == HONEST
    assert {"optimized.o", "rest.o"} <= {file.name for file in files}


def test_inputs_are_not_shown_to_clients(counted: tuple[Task, Executor]) -> None:
    task, _ = counted
    assert "12345" in task.program.text
    shown = LlvmLevel().public_text(task.program)
    assert "@mixed" in shown
    assert "12345" not in shown
    assert "printf" not in shown


def test_a_program_is_read_back_with_its_inputs(counted: tuple[Task, Executor]) -> None:
    task, _ = counted
    again = LlvmLevel().read(task.program.text, task.target)
    assert again.running == task.program.running
    assert again.running
    assert [each.args for each in again.running.inputs] == [("4",), ("12345",), ("77",)]
    assert again.running.inputs[2].stdin.startswith(b"\n#include")


def test_a_program_that_is_not_run_takes_no_source() -> None:
    level = LlvmLevel()
    program = level.load(KERNEL_IR, {})
    task = Task(program, level.target(program, 1), (level.objectives["instructions"],), level.version)
    assert level.text_format(task) == ""
    with pytest.raises(PlanishError, match="not read from text"):
        level.candidate_of_text(task, HONEST)


KERNEL_IR = "define i32 @f(i32 %x) {\n  %y = add i32 %x, %x\n  ret i32 %y\n}\n"

SOMETIMES = (
    f"{HEAD}{{ unsigned x; {LOOP.replace('return sum;', '')} "
    "return ((unsigned long)&x >> 12) % 4 ? sum : 0; }"
)


def test_what_is_right_only_sometimes_has_no_time(tmp_path: Path) -> None:
    """The address of the stack differs from run to run: the answer of each timed run is compared.

    A candidate that passes a few runs by chance has a time, so there are several.
    """
    task = task_in(tmp_path, "time_s")
    with LocalExecutor(LlvmLevel().evaluator(task)) as executor:

        def outcome(text: str) -> Outcome:
            return next(each.outcome for each in evaluate(executor, [Candidate((CSource(text),))]))

        assert isinstance(outcome(HONEST), Measured)
        found = (outcome(f"{SOMETIMES} // {number}\n") for number in range(60))
        failed = next(each for each in found if isinstance(each, Failed) and each.stage == "run")
    assert failed.reason == "wrong answer"
