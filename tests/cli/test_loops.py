"""Programs and machines that the loops level refuses, as a user meets them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Planish
from planish.core import PlanishError, ProgramError, TargetError
from planish.levels.loops import backends

MATMUL = "C[m,n] += A[m,k] * B[k,n]"
SIZE = "m=8,n=8,k=8"
HUGE = "m=9000000,n=9000000,k=9000000"

MALFORMED: dict[tuple[str, ...], str] = {
    (MATMUL, "--size", "m=8,n=8"): "axis 'k' of A, B has no size",
    (MATMUL,): "axes 'm', 'n', 'k' of C, A, B have no size. Add --size m=...,n=...,k=..., or shapes",
    (MATMUL, "--size", f"{SIZE},z=3"): "axis 'z', which no statement has. Known: k, m, n.",
    (MATMUL, "--size", "m=8,n=8,k=0"): "axis 'k' has size 0. Sizes are at least 1.",
    (MATMUL, "--size", "m=8,n=8,k=-1"): "axis 'k' has size -1. Sizes are at least 1.",
    (MATMUL, "--size", "m=8,n=8,k=x"): "'k=x' is not a size. Write --size m=192,n=192.",
    (MATMUL, "--size", SIZE, "--size", "m=4"): "axis 'm' has two sizes, 8 and 4. Give each axis one size.",
    (MATMUL, "--size", SIZE, "--shape", "A=8x8", "--shape", "A=8x9"): "tensor 'A' has two shapes, in",
    (MATMUL, "--size", SIZE, "--shape", "A=8x8x8"): "A",
    (MATMUL, "--size", SIZE, "--shape", "A=8x9"): "A",
    ("C[m,n] += A[m,k] * A[k]", "--size", SIZE): "A[m, k] and A[k] differ in rank: 2 and 1",
    (MATMUL, "--size", SIZE, "--dtype", "uint32"): "'uint32' is not supported. Did you mean 'int32'?",
    (
        MATMUL,
        "--size",
        SIZE,
        "--dtype",
        "half",
    ): "'half' is not supported. Known: bfloat16, bfloat16x2,",
    (
        MATMUL,
        "--size",
        SIZE,
        "--dtype",
        "Z=float16",
    ): "an element type is given for 'Z', which no statement has",
    (MATMUL, "--size", SIZE, "--dtype", "A=float16,B=float64"): "the tensors have types float16, float64",
    (MATMUL, "--size", HUGE): "GiB",
    ("C[m,n] += ", "--size", SIZE): "expected a tensor, at the end",
    ("absent.loops",): "cannot read 'absent.loops': No such file or directory",
}


@pytest.mark.parametrize("words", MALFORMED, ids=" ".join)
def test_a_malformed_program_is_one_line(planish: Planish, words: tuple[str, ...]) -> None:
    said = planish("tune", *words)
    assert MALFORMED[words] in said.error
    assert (said.code, said.out) == (ProgramError.exit_code, "")


def test_a_file_may_hold_the_wrong_text(planish: Planish, tmp_path: Path) -> None:
    for content, expected in ((b"a tree[", "column 3"), (b"\xff\xfe", "is not a text")):
        (tmp_path / "p.loops").write_bytes(content)
        said = planish("tune", tmp_path / "p.loops")
        assert said.code == ProgramError.exit_code
        assert expected in said.error


def test_what_the_machine_lacks_is_one_line(planish: Planish) -> None:
    said = planish("tune", MATMUL, "--size", SIZE, "--cores", 4096)
    assert said.code == TargetError.exit_code
    assert said.error.endswith("at most.")


def test_a_number_of_cores_that_no_machine_has_names_the_option(planish: Planish) -> None:
    said = planish("tune", MATMUL, "--size", SIZE, "--cores", 0)
    assert said.code == 2
    assert "Invalid value for '--cores': 0 is not in the range x>=1" in said.error


UNKNOWN = {
    ("--option", "bakend=x"): "no option 'bakend'. Did you mean 'backend'?",
    ("--option", "backend=x87"): "no back end 'x87'. Known: portable, x86-avx2, x86-avx512.",
    ("--space", "templat"): "no space 'templat'. Did you mean 'template'?",
}


@pytest.mark.parametrize("words", UNKNOWN, ids=" ".join)
def test_a_name_that_is_unknown_is_one_line(planish: Planish, words: tuple[str, str]) -> None:
    said = planish("tune", MATMUL, "--size", SIZE, *words)
    assert UNKNOWN[words] in said.error
    assert said.code == PlanishError.exit_code


def test_a_searcher_that_does_not_fit_the_space_names_those_that_do(planish: Planish) -> None:
    said = planish("tune", MATMUL, "--size", SIZE, "--searcher", "genetic", "--space", "steps")
    assert said.code == PlanishError.exit_code
    assert "does not offer: crossover, mutate. Name a space that does: --space template." in said.error
    assert "Searchers that fit: beam-bfs" in said.error


@pytest.fixture
def old_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make this a processor with neither AVX2 nor AVX-512."""
    monkeypatch.setattr("planish.levels.loops.backends.cpu_features", lambda: frozenset({"sse2", "avx"}))
    backends.available_backends.cache_clear()
    yield
    backends.available_backends.cache_clear()


@pytest.mark.usefixtures("old_processor")
def test_a_processor_without_avx2_uses_the_portable_back_end(planish: Planish) -> None:
    tune = ["tune", MATMUL, "--size", SIZE, "--trials", 3, "--finalists", 1]
    said = planish(*tune, "--option", "backend=x86-avx2")
    assert said.code == TargetError.exit_code
    assert said.error == "back end 'x86-avx2' does not work on this machine. It has: portable."
    found = json.loads(planish(*tune, "--format", "json").out)
    assert found["task"]["target"]["toolchain"]["backend"] == "portable"
    assert found["best"]["values"]["gflops"] > 0


def test_a_task_that_needs_more_memory_than_a_worker_may_have_is_one_line(planish: Planish) -> None:
    said = planish("tune", "B[m] += A[m,n]", "--size", "m=33000,n=33000", "--format", "json")
    assert said.code == TargetError.exit_code
    assert said.error.endswith("Give smaller sizes.")


@pytest.mark.filterwarnings("default")  # they are shown, and not raised
def test_a_kernel_is_exported_under_a_name(planish: Planish, tmp_path: Path) -> None:
    run = json.loads(
        planish("tune", "C[m] += A[m,k]", "--size", "m=8,k=8", "--trials", 2, "--format", "json").out
    )["run"]["id"]
    said = planish("export", run, tmp_path / "k", "--name", "total")
    assert [Path(line).name for line in said.out.splitlines()] == ["total.s", "total.h", "total.json"]
    assert "static inline void total(const float *A, float *C" in (tmp_path / "k" / "total.h").read_text()
    again = planish("export", run, tmp_path / "k", "--name", "other")
    assert again.code == 0
    assert f"warning: the folder {tmp_path / 'k'} also has the kernel total" in again.err
    assert planish("export", run, tmp_path / "k", "--name", "int").error.startswith("'int' cannot name a C")
