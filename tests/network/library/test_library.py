"""The shared library: made without a compiler, read by loaders, linkers and debuggers, called from C."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

import planish
from network.compiled import assert_same, built_library, run_onnxruntime, small_model
from network_models import ModelWriter
from planish.core import TargetError
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.objects import CODE, Relocation, Section, Symbol, read_object
from planish.network.library.elf import X86_64, architecture_name, link, symbol_hash
from planish.network.library.runtime import CompiledNetwork
from planish.sandbox.scratch import shared_folder


def needs(tool: str) -> pytest.MarkDecorator:
    """Skip a test where a tool is missing."""
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a small network, without any program to be found."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder))
        planish.compile(small_model(folder / "m.onnx"), output=folder / "net")
    return folder


def test_library_is_made_without_a_compiler(made: Path) -> None:
    assert_same(CompiledNetwork(made / "net"), made / "m.onnx")


def test_library_without_a_folder_stands_where_it_is_removed_even_if_the_process_is_killed(
    tmp_path: Path,
) -> None:
    network = planish.compile(small_model(tmp_path / "m.onnx"))
    assert network.folder.parent == shared_folder()


@needs("readelf")
def test_library_is_well_formed(made: Path) -> None:
    ran = subprocess.run(
        ["readelf", "-aW", made / "net" / "model.so"], check=True, capture_output=True, text=True
    )
    assert not ran.stderr
    assert "NEEDED" not in ran.stdout
    assert "TEXTREL" not in ran.stdout
    rights = re.findall(r"^  (LOAD|GNU_STACK) .* ([R ][W ][E ]) 0x", ran.stdout, re.MULTILINE)
    assert ("GNU_STACK", "RW ") in rights
    assert len(rights) > 3
    assert not any("W" in each and "E" in each for _, each in rights)
    names = [line.split()[-1] for line in ran.stdout.splitlines() if " FUNC " in line]
    assert "kernel0_conv_relu_run0" in names


def test_weights_are_mapped_and_not_copied(tmp_path: Path) -> None:
    w = ModelWriter()
    path = w.save(tmp_path / "m.onnx", w.add("MatMul", w.input("x", (1, 1000)), w.weight(1000, 500)))
    planish.compile(path, output=tmp_path / "net")(np.ones((1, 1000), np.float32))
    maps = Path("/proc/self/smaps").read_text()
    found = re.findall(rf" (r\S+) .*{tmp_path}/net/model.so\n((?:[A-Z]\S+: .*\n)+)", maps)
    kib = re.compile(r"^Size: +(\d+)", re.MULTILINE)
    sizes = [(rights, int(kib.findall(rest)[0]), rest) for rights, rest in found]
    rights, size, rest = max(sizes, key=lambda each: each[1])
    assert rights == "r--p"
    assert size >= 1000 * 500 * 4 // 1024
    assert re.search(r"^Anonymous: +0 kB", rest, re.MULTILINE)


@needs("gdb")
def test_debugger_names_kernels(made: Path) -> None:
    command = ["gdb", "-nx", "-batch", "-ex", "info symbol kernel1_globalaveragepool_run0"]
    ran = subprocess.run([*command, made / "net" / "model.so"], check=True, capture_output=True, text=True)
    assert "kernel1_globalaveragepool_run0 in section .text" in ran.stdout


_PROGRAM = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static float x[192];
    static float y[8];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    char *workspace = aligned_alloc(MODEL_ALIGNMENT, MODEL_WORKSPACE_BYTES + MODEL_ALIGNMENT);
    for (int i = 0; i < 192; i++)
        x[i] = 0.01f * i;
    if (model_run(inputs, outputs, workspace + 4) != MODEL_MISALIGNED)
        return 1;
    if (model_run(inputs, outputs, workspace))
        return 2;
#ifndef NDEBUG
    void *wrong[] = {x + 190};
    if (model_run(inputs, wrong, workspace) != MODEL_WRONG_BUFFER)
        return 3;
    wrong[0] = (char *)y + 1;
    if (model_run(inputs, wrong, workspace) != MODEL_WRONG_BUFFER)
        return 4;
    wrong[0] = workspace + 64;
    if (model_run(inputs, wrong, workspace) != MODEL_WRONG_BUFFER)
        return 5;
#endif
    printf("%s %s\\n", model_inputs[0].name, model_outputs[0].type);
    for (int i = 0; i < 8; i++)
        printf("%.9g\\n", y[i]);
    return 0;
}
"""


def test_library_is_called_from_c(tmp_path: Path) -> None:
    path = small_model(tmp_path / "m.onnx")
    planish.compile(path, output=tmp_path / "net")
    (tmp_path / "main.c").write_text(_PROGRAM)
    command = [
        "cc",
        "-Wall",
        "-Werror",
        "-Inet",
        "main.c",
        "net/model.so",
        "-o",
        "main",
        "-Wl,-rpath,$ORIGIN/net",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout.split("\n")
    x = (np.float32(0.01) * np.arange(192, dtype=np.float32)).reshape(1, 3, 8, 8)
    assert lines[0] == "x float32"
    right = run_onnxruntime(path, {"x": x})[0].reshape(-1)
    np.testing.assert_allclose([float(line) for line in lines[1:9]], right, rtol=1e-5)


@needs("cmake")
@needs("cc")
def test_example_is_built_by_cmake(made: Path, tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples" / "network"
    for command in (
        ["cmake", "-S", example, "-B", tmp_path, f"-DNET={made / 'net'}"],
        ["cmake", "--build", tmp_path],
    ):
        subprocess.run(command, check=True, capture_output=True)
    lines = subprocess.run([tmp_path / "main"], check=True, capture_output=True, text=True).stdout.split()
    right = run_onnxruntime(made / "m.onnx", {"x": np.ones((1, 3, 8, 8), np.float32)})[0].reshape(-1)
    np.testing.assert_allclose([float(each) for each in lines[1:]], right[:4], rtol=1e-5)


@needs("qemu-x86_64")
@needs("cc")
def test_missing_instructions_are_a_return_code(made: Path, tmp_path: Path) -> None:
    if "avx2" not in llvm.get_host_cpu_features():
        pytest.skip("the library needs no instructions that others lack")
    source = Path(__file__).parents[3] / "examples" / "network" / "main.c"
    net = made / "net"
    command = ["cc", f"-I{net}", source, net / "model.so", "-o", tmp_path / "main", f"-Wl,-rpath,{net}"]
    subprocess.run(command, check=True)
    ran = subprocess.run(
        ["qemu-x86_64", "-cpu", "Nehalem", tmp_path / "main"], check=False, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (1, "model_run returns 1\n")


# The linker

_MODULE = """
@text = internal constant [4 x i8] c"abc\\00"
@pointers = internal constant [2 x ptr] [ptr @text, ptr @twice]
@count = internal global i64 5
@zeros = internal global [100 x i64] zeroinitializer
@missing = internal constant ptr @defined_nowhere
@present = internal constant ptr @abs
declare extern_weak i32 @defined_nowhere()
declare extern_weak i32 @abs(i32)
declare hidden i64 @added(i64, i64)

define internal i64 @twice(i64 %n) {
  %sum = call i64 @added(i64 %n, i64 %n)
  ret i64 %sum
}

define i64 @run(i64 %n) {
  %first = load ptr, ptr @pointers
  %letter = getelementptr i8, ptr %first, i64 2
  %c = load i8, ptr %letter
  %wide = zext i8 %c to i64
  %second_ = getelementptr ptr, ptr @pointers, i64 1
  %second = load volatile ptr, ptr %second_
  %twice = call i64 %second(i64 %n)
  %count = load i64, ptr @count
  %more = add i64 %count, 1
  store i64 %more, ptr @count
  %zero_ = getelementptr i64, ptr @zeros, i64 99
  %zero = load i64, ptr %zero_
  %a = add i64 %twice, %wide
  %b = add i64 %a, %count
  %c64 = add i64 %b, %zero
  ret i64 %c64
}

define i32 @imports() {
  %missing = load volatile ptr, ptr @missing
  %is_missing = icmp eq ptr %missing, null
  %present = load volatile ptr, ptr @present
  %one = call i32 %present(i32 -41)
  %other = zext i1 %is_missing to i32
  %sum = add i32 %one, %other
  ret i32 %sum
}
"""
_ADDED = bytes.fromhex("488d0437 c3")
"""lea rax, [rdi + rsi]; ret"""


@pytest.mark.skipif(not jit.host_machine().triple.startswith("x86_64"), reason="its code is of x86-64")
def test_objects_and_code_are_linked(tmp_path: Path) -> None:
    sections = read_object(jit.object_code(_MODULE, jit.host_machine()), "object")
    sections.append(Section(CODE, _ADDED, [Symbol("added", 0, len(_ADDED))]))
    path = tmp_path / "made.so"
    path.write_bytes(b"".join(link(sections, memoryview(bytes(64)), X86_64, "made.so", ["run", "imports"])))
    library = ctypes.CDLL(str(path))
    library.run.argtypes, library.run.restype = [ctypes.c_int64], ctypes.c_int64
    assert [library.run(10), library.run(10)] == [20 + ord("c") + 5, 20 + ord("c") + 6]
    assert library.imports() == 41 + 1
    assert not hasattr(library, "twice")


def test_code_that_cannot_be_linked_is_refused() -> None:
    for kind, symbol, why in ((2, "other", "nothing defines"), (99, "own", "not known")):
        section = Section(CODE, bytes(8), [Symbol("own", 0, 8)], [Relocation(0, kind, symbol)])
        with pytest.raises(TargetError, match=why):
            link([section], memoryview(bytes(64)), X86_64, "made.so", ["own"])
    with pytest.raises(TargetError, match="riscv64"):
        architecture_name("riscv64-unknown-linux-gnu")


def test_symbol_hash() -> None:
    # From the System V application binary interface's supplements and glibc's tests.
    assert symbol_hash("printf") == 0x077905A6
    assert symbol_hash("exit") == 0x0006CF04
    assert symbol_hash("syscall") == 0x0B09985C


def test_libraries_of_a_model_are_equal(tmp_path: Path) -> None:
    # 258 channels are packed for vectors, with room behind them: no memory of this process may be in it.
    w = ModelWriter()
    x = w.add("Conv", w.input("x", (1, 1, 640)), w.weight(258, 1, 256), strides=[128])
    path = w.save(tmp_path / "m.onnx", x)
    found = list[bytes]()
    for byte in (0x11, 0x77):
        used = [np.full(size, byte, np.uint8) for size in range(100_000, 400_000, 10_000)]
        del used
        found.append(bytes(built_library(path).weights))
    assert found[0] == found[1]
