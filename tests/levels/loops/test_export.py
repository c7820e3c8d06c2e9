"""Exported kernels are built by a C compiler and called from C, without planish."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from planish.core import (
    Candidate,
    Objective,
    PlanishError,
    ProgramError,
    Step,
    Target,
    Task,
    candidate_from_json,
)
from planish.core.errors import UnknownNameError
from planish.core.hashing import rng
from planish.levels.loops import export
from planish.levels.loops.backends import Library, UseBackend, available_backends, cross_target, tree_of
from planish.levels.loops.export import export_kernel
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.parse import parse, parse_canonical
from planish.levels.loops.lang.program import Program
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.space.cursor import STEPS
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.steps import Pack, Parallel, Reorder, Split

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
C = ["gcc", "-std=c99", "-x", "c", *STRICT]
CXX = ["g++", "-std=c++17", "-x", "c++", *STRICT]

OPENMP = ["gcc", "-std=c99", "-x", "c", "-fopenmp", "-DTHREADS", *STRICT]

needs_compiler = pytest.mark.skipif(not shutil.which("gcc"), reason="there is no C compiler")

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "f.h"

#ifdef THREADS
#include <omp.h>

static void wait_for_all(void *none)
{{
    (void)none;
#pragma omp barrier
}}
#endif

static void *memory(size_t bytes, const char *name)
{{
    char *block = malloc(bytes + 64);
    block += 64 - (uintptr_t)block % 64;
    if (name) {{
        FILE *file = fopen(name, "rb");
        if (!file || fread(block, 1, bytes, file) != bytes) exit(1);
        fclose(file);
    }}
    return block;
}}

static void save(const void *block, size_t bytes, const char *name)
{{
    FILE *file = fopen(name, "wb");
    if (!file || fwrite(block, 1, bytes, file) != bytes) exit(1);
    fclose(file);
}}

int main(void)
{{
{body}
    return 0;
}}
"""


def task_of(program: Program, backend: str) -> Task:
    target = Target("this processor", frozenset({backend}), 1, {"backend": backend})
    return Task(program, target, (Objective("time_s", "s"),), "1")


def exported(program: Program, steps: tuple[Step, ...], backend: str, folder: Path) -> list[Path]:
    return export_kernel(task_of(program, backend), Candidate(steps), folder, "f")


def bytes_of(program: Program, name: str) -> int:
    kind = program.type[name]
    return kind.size * numpy_type(kind.dtype).itemsize


def build(folder: Path, source: str, compiler: Sequence[str]) -> None:
    """Compile a main program with the kernel `f`."""
    (folder / "main.source").write_text(source)
    files = ["main.source", "-x", "none", "f.s", "-o", "main"]
    done = subprocess.run([*compiler, *files], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_in_c(
    program: Program, folder: Path, calls: list[str], compiler: Sequence[str] = C, runner: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Build a program of these calls, run it on files with the inputs, and read the outputs."""
    inputs = make_inputs(program)
    lines: list[str] = []
    for name in (*program.inputs, *program.outputs):
        dtype = program.type[name].dtype
        kind = {"float32": "float", "float64": "double", "int8": "int8_t", "int32": "int32_t"}.get(
            dtype, "uint16_t"
        )
        source = f'"{name}.in"' if name in program.inputs else "0"
        lines.append(f"{kind} *{name} = ({kind} *)memory({bytes_of(program, name)}, {source});")
        if name in program.inputs:
            inputs[name].tofile(folder / f"{name}.in")
    lines += calls
    lines += [f'save({name}, {bytes_of(program, name)}, "{name}.out");' for name in program.outputs]
    build(folder, MAIN.format(body="\n".join(f"    {line}" for line in lines)), compiler)
    subprocess.run([*runner, str(folder / "main")], cwd=folder, check=True)
    return {
        name: np.fromfile(folder / f"{name}.out", numpy_type(kind.dtype)).reshape(kind.shape)
        for name, kind in program.types
        if name in program.outputs
    }


def called(folder: Path, *calls: str) -> list[str]:
    """End calls, with a workspace where registers do not hold all that a kernel has between its loops."""
    if "F_WORKSPACE_BYTES" not in (folder / "f.h").read_text():
        return [f"{call});" for call in calls]
    return ["void *workspace = memory(F_WORKSPACE_BYTES, 0);", *(f"{call}, workspace);" for call in calls)]


def right(program: Program, outputs: dict[str, np.ndarray]) -> bool:
    return check(program, outputs, reference(program, make_inputs(program))) is None


GEMM, SIZES = "C[m,n] += A[m,k] * B[k,n]", {"m": 13, "n": 35, "k": 9}
TILED = (Split("m", 4), Reorder(("m:4", "k", "m", "n")))
NARROW = "A=float16,B=bfloat16,C=bfloat16"
PLAIN: dict[str, tuple[Program, tuple[Step, ...], str]] = {
    "a product": (parse(GEMM, SIZES), TILED, "f(const float *A, const float *B, float *C)"),
    "narrow": (parse(GEMM, SIZES, dtype=NARROW), (), "f(const uint16_t *A, const uint16_t *B, uint16_t *C"),
    "whole": (parse(GEMM, SIZES, dtype="int8"), (), "f(const int8_t *A, const int8_t *B, int32_t *C)"),
    "a table": (
        parse("O[t,d] = E[I[t],d]", {"t": 13}, {"E": (9, 35)}),
        (),
        "f(const float *E, const float *I, float *O)",
    ),
}


@needs_compiler
@pytest.mark.parametrize("backend", available_backends())
@pytest.mark.parametrize("name", PLAIN)
def test_a_kernel_is_a_function_of_its_tensors(name: str, backend: str, tmp_path: Path) -> None:
    program, steps, signature = PLAIN[name]
    files = exported(program, steps, backend, tmp_path)
    assert [f.name for f in files] == ["f.s", "f.h", "f.json"]
    header = files[1].read_text()
    assert f"static inline void {signature}" in header
    assert name != "narrow" or " * A: uint16_t, the bits of float16, [13][9]\n" in header
    call = f"f({', '.join((*program.inputs, *program.outputs))}"
    assert right(program, run_in_c(program, tmp_path, called(tmp_path, call)))


@needs_compiler
@pytest.mark.parametrize("backend", available_backends())
def test_axes_that_stand_in_values_are_prepared(backend: str, tmp_path: Path) -> None:
    program = parse("O[i] = argmax(X[i,k])", {"i": 13, "k": 35})
    exported(program, (), backend, tmp_path)
    calls = called(tmp_path, "f_prepare(prepared", "f(X, O, prepared")
    outputs = run_in_c(program, tmp_path, ["void *prepared = memory(F_PREPARED_BYTES, 0);", *calls])
    assert right(program, outputs)
    np.testing.assert_array_equal(outputs["O"], make_inputs(program)["X"].argmax(axis=1))


@needs_compiler
@pytest.mark.parametrize("backend", available_backends())
def test_weights_are_prepared_and_temporaries_have_a_workspace(backend: str, tmp_path: Path) -> None:
    """Everything at once: an ahead part, shared and private temporaries, a parallel loop, and float64."""
    text = "C[m,n] += A[m,k] * B[k,n]; D[m,n] = exp(C[m,n] - A[m,0])"
    program = parse(text, {"m": 13, "n": 35, "k": 9}, dtype="float64").with_constants(["B"])
    steps = (
        Split("m", 4), Split("n", 8), Reorder(("m:4", "n:8", "k", "m", "n")),
        Pack("B", "root", ahead=True), Pack("A", "m:4"), Parallel("m:4"),
    )  # fmt: skip
    exported(program, steps, backend, tmp_path)
    header = (tmp_path / "f.h").read_text()
    assert "f_prepare(const double *B, void *prepared, void *workspace)" in header
    assert "f(const double *A, double *D, const void *prepared, void *workspace)" in header
    for line in (
        "static _Alignas(64) char prepared[F_PREPARED_BYTES];",
        "static _Alignas(64) char workspace[F_WORKSPACE_BYTES];",
        "f_prepare(B, prepared, workspace);  once",
        "f(A, D, prepared, workspace);",
    ):
        assert f" *     {line}\n" in header
    assert " * f runs in the calling thread. To run it in several, call f_thread in\n" in header
    calls = [
        "void *prepared = memory(F_PREPARED_BYTES, 0), *workspace = memory(F_WORKSPACE_BYTES, 0);",
        "f_prepare(B, prepared, workspace);",
        "f(A, D, prepared, workspace);",
    ]
    assert right(program, run_in_c(program, tmp_path, calls))
    for threads in (1, 2, 3, 5):
        calls = [
            f"char *workspace = memory(F_WORKSPACE_BYTES_FOR({threads}), 0);",
            "void *prepared = memory(F_PREPARED_BYTES, 0);",
            "f_prepare(B, prepared, workspace);",
            f"#pragma omp parallel num_threads({threads})",
            "f_thread(A, D, prepared, workspace, omp_get_thread_num(), omp_get_num_threads(),",
            "         wait_for_all, 0);",
        ]
        assert right(program, run_in_c(program, tmp_path, calls, OPENMP))


@needs_compiler
@pytest.mark.parametrize("backend", available_backends())
def test_the_c_program_of_the_tutorial_runs(backend: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "tutorials" / "loops.md").read_text()
    (tmp_path / "main.c").write_text(page.split("```c\n")[1].split("```")[0])
    text = "C[m,n] += A[m,k] * B[k,n]; D[m,n] = relu(C[m,n] - A[m,0])"
    assert text in page
    program = parse(text, {"m": 13, "n": 35, "k": 9}).with_constants(["B"])
    steps = (
        Split("m", 4), Split("n", 8), Reorder(("m:4", "n:8", "k", "m", "n")),
        Pack("B", "root", ahead=True), Pack("A", "m:4"),
    )  # fmt: skip
    export_kernel(task_of(program, backend), Candidate(steps), tmp_path, "kernel")
    command = ["gcc", *STRICT, "main.c", "kernel.s", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True)
    assert ran.stdout == "17\n"


AARCH64 = ["aarch64-linux-gnu-gcc", *C[1:], "-static"]
CONVOLUTION = parse(
    "O[k,y,x] += relu(I[c,y+r,x+s]) * W[k,c,r,s]", {"k": 9, "y": 6, "x": 7, "c": 3, "r": 3, "s": 3}
)
SOFTMAX = parse(
    "M[b] max= X[b,i]; E[b,i] = exp(X[b,i] - M[b]); S[b] += E[b,i]; Y[b,i] = E[b,i] / S[b]", {"b": 5, "i": 23}
)
CROSS = {
    "a product": parse(GEMM, SIZES),
    "with packed weights": parse(GEMM, SIZES).with_constants(["B"]),
    "narrow": parse(GEMM, SIZES, dtype=NARROW),
    "of float64": parse(GEMM, SIZES, dtype="float64"),
    "whole": parse(GEMM, SIZES, dtype="int8"),
    "a convolution": CONVOLUTION,
    "softmax": SOFTMAX,
}


@pytest.mark.slow(after=4)
@pytest.mark.skipif(
    not (shutil.which(AARCH64[0]) and shutil.which("qemu-aarch64")),
    reason="there is no compiler and emulator of aarch64 (packages gcc-aarch64-linux-gnu and qemu-user)",
)
@pytest.mark.parametrize("name", CROSS)
def test_a_kernel_for_another_processor_computes_there(name: str, tmp_path: Path) -> None:
    """The default schedule for the other processor, and samples, are called as the header shows it."""
    program, target = CROSS[name], cross_target("aarch64")
    space, task = TemplateSpace(program, target), Task(program, target, (Objective("time_s", "s"),), "1")
    for number, candidate in enumerate([space.start(), *(space.sample(rng(seed)) for seed in range(2))]):
        folder = tmp_path / str(number)
        header = export_kernel(task, candidate, folder, "f")[1].read_text()
        assert "Made by planish for aarch64." in header
        calls = [f"{line[7:].split(';')[0]};" for line in header.splitlines() if line.startswith(" *     f")]
        memory = [name for name in ("prepared", "workspace") if f"F_{name.upper()}_BYTES " in header]
        calls = [*(f"void *{name} = memory(F_{name.upper()}_BYTES, 0);" for name in memory), *calls]
        assert right(program, run_in_c(program, folder, calls, AARCH64, ["qemu-aarch64"])), candidate


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(
        UnknownNameError, match=r"level 'loops' has no target 'aarch65'\. Did you mean 'aarch64'"
    ):
        cross_target("aarch65")


@needs_compiler
@pytest.mark.parametrize("option", ["-pthread", "-fopenmp"])
def test_the_programs_with_threads_of_the_guide_run(option: str, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "threads.md").read_text()
    _, pthread, openmp = (block.split("```")[0] for block in page.split("```c\n"))
    (tmp_path / "main.c").write_text({"-pthread": pthread, "-fopenmp": openmp}[option])
    program = parse(GEMM, {"m": 192, "n": 192, "k": 192})
    steps = Split("m", 16), Reorder(("m:16", "k", "m", "n")), Parallel("m:16")
    export_kernel(task_of(program, "portable"), Candidate(steps), tmp_path / "kernel", "matmul")
    command = ["gcc", "-std=gnu11", *STRICT, option, "-Ikernel", "main.c", "kernel/matmul.s", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ran = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True)
    assert ran.stdout == "384\n"


@needs_compiler
def test_parts_of_a_parallel_loop_are_called_alone(tmp_path: Path) -> None:
    program = parse("C[m] = A[m] + 1", {"m": 20})
    exported(program, (Split("m", 8), Parallel("m:8")), "portable", tmp_path)
    assert "/* parallel: [0, 3) */" in (tmp_path / "f.h").read_text()
    calls = ["void *args[] = {A, C, 0, 0};", "f_run0(args, 1, 3);", "f_run0(args, 0, 1);"]
    assert right(program, run_in_c(program, tmp_path, calls))


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
def test_the_header_is_cxx_too_and_no_name_is_a_keyword(tmp_path: Path) -> None:
    program = parse("args[m] = new[m] + 1", {"m": 20})
    exported(program, (), "portable", tmp_path)
    header = (tmp_path / "f.h").read_text()
    assert "f(const float *new_, float *args_)" in header
    source = '#include "f.h"\nint main() { float a[20], b[20] = {}; f(b, a); return a[3] != 1; }\n'
    build(tmp_path, source, CXX)
    subprocess.run([str(tmp_path / "main")], check=True)


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
def test_a_tensor_may_be_called_as_a_header_calls_something(tmp_path: Path) -> None:
    called = {
        **{
            name: f"{name}_"
            for name in ("int8_t", "uint_fast16_t", "uintptr_t", "INT64_MAX", "UINT8_C", "NULL")
        },
        **{name: f"{name}_" for name in ("int8_t_", "SIZE_MAX", "wchar_t", "unix", "f_run0", "F_H", "F_H_")},
        "__LINE__": "t__LINE__",
        "t__LINE__": "tt__LINE__",
        "f": "f",
        "x_": "x_",
    }
    program = parse(f"Y[m] = {' + '.join(f'{name}[m]' for name in called)}", {"m": 20})
    exported(program, (), "portable", tmp_path)
    parameters = ", ".join(f"const float *{name}" for name in called.values())
    assert f"f({parameters}, float *Y)" in (tmp_path / "f.h").read_text()
    values = ", ".join("b" for _ in called)
    body = f"float a[20], b[20] = {{0}}; f({values}, a); return a[3] != 0;"
    source = f'#include "f.h"\nint main(void) {{ {body} }}\n'
    for compiler in (["gcc", "-std=gnu17", "-x", "c", *STRICT], CXX):
        build(tmp_path, source, compiler)
        subprocess.run([str(tmp_path / "main")], check=True)


@pytest.mark.parametrize(
    "name", ["int", "int8_t", "UINT64_C", "PTRDIFF_MIN", "operator", "_X", "__file", "main"]
)
def test_a_name_that_a_header_has_is_none_for_a_kernel(tmp_path: Path, name: str) -> None:
    task = task_of(parse("C[m] = A[m]", {"m": 20}), "portable")
    with pytest.raises(ProgramError, match=rf"'{name}' cannot name a C function\. Use .* <stdint.h>"):
        export_kernel(task, Candidate(), tmp_path, name)


def test_the_record_gives_the_schedule_back(tmp_path: Path) -> None:
    program = parse(GEMM, SIZES)
    candidate = Candidate((Split("m", 4), UseBackend("portable")))
    files = export_kernel(task_of(program, "portable"), candidate, tmp_path / "new" / "folder")
    record = json.loads(files[2].read_text())
    assert parse_canonical(record["program"]) == program
    assert candidate_from_json(record["steps"], {**STEPS, "UseBackend": UseBackend}) == candidate
    assert record["name"] == files[0].stem
    assert files[0].stem.startswith("kernel_")


def test_different_schedules_have_different_names(tmp_path: Path) -> None:
    program = parse("C[m] = A[m]", {"m": 20})
    task = task_of(program, "portable")
    first = export_kernel(task, Candidate(), tmp_path)[0]
    assert export_kernel(task, Candidate(), tmp_path)[0] == first, "it is replaced, without a warning"
    with pytest.warns(UserWarning, match=rf"the folder {tmp_path} also has the kernel {first.stem}"):
        second = export_kernel(task, Candidate((Split("m", 4),)), tmp_path)[0]
    assert second != first


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    task = task_of(parse("C[m] = A[m]", {"m": 20}), "portable")
    with pytest.raises(ProgramError, match="computed by numpy: there is no kernel"):
        export_kernel(task, Candidate((Library("numpy"),)), tmp_path)
    with pytest.raises(ProgramError, match="'my-kernel' cannot name a C function"):
        export_kernel(task, Candidate(), tmp_path, "my-kernel")
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanishError, match="cannot write to"):
        export_kernel(task, Candidate(), tmp_path / "file")


def test_a_kernel_with_a_wrong_answer_is_not_exported_and_is_no_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of another program takes the place of this one's, as a mistake of a generator would."""
    program = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 8, "n": 8, "k": 8})
    other = parse("C[m,n] += A[m,k] * B[k,n] * A[m,k]", {"m": 8, "n": 8, "k": 8})

    def of_other(_: Program, candidate: Candidate) -> LoopTree:
        return tree_of(other, candidate)

    monkeypatch.setattr(export, "tree_of", of_other)
    with pytest.raises(PlanishError, match=r"this kernel computes a wrong answer: C\[\d, \d\] is "):
        exported(program, (), "portable", tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(PlanishError, match="this kernel computes a wrong answer: C"):
        LoopsLevel().function(task_of(program, "portable"), Candidate())
