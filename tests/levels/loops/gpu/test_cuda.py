"""CUDA kernels are compiled without a GPU: statistics, exports, batches, and what is said without one."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levels.loops.gpu.hanging import Losing
from planish.core import Candidate, DeviceLostError, Failed, Measured, ScheduleError, TargetError, Task
from planish.levels.loops.gpu import cuda, cuda_driver
from planish.levels.loops.gpu.batch import read_batch, write_batch
from planish.levels.loops.gpu.cuda import (
    GPUS,
    CompiledCuda,
    compile_all,
    compile_by_nvcc,
    compile_cuda,
    cubin_cache,
    cuda_target,
    find_nvrtc,
    read_statistics,
)
from planish.levels.loops.gpu.devices import Gpu, KernelStatistics
from planish.levels.loops.gpu.dialect import CUDA
from planish.levels.loops.gpu.evaluator import compiled_for
from planish.levels.loops.gpu.kernels import tensor_maps
from planish.levels.loops.gpu.running import MARGIN, CompiledKernels, Launch
from planish.levels.loops.gpu.schedule import gpu_program_of
from planish.levels.loops.gpu.source import kernel_source
from planish.levels.loops.gpu.space import GpuSpace
from planish.levels.loops.gpu.steps import (
    BlockTile,
    BulkCopies,
    LaunchBounds,
    PackOperand,
    ReduceTile,
    SharedTile,
    TensorTile,
    UnrollReduction,
)
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.level import LoopsLevel
from planish.measure.executors import LocalExecutor

LEVEL = LoopsLevel()
there = find_nvrtc() or shutil.which("nvcc")
compiles = pytest.mark.skipif(not there, reason="neither NVRTC nor nvcc is installed")
MATMUL = "C[m,n] += A[m,k] * B[k,n]"
TILED = (
    *(BlockTile("m", 16, 4, 2), BlockTile("n", 16, 4, 2), ReduceTile("k", 16)),
    *(SharedTile("A", pad=4), SharedTile("B"), UnrollReduction("k", 16)),
)


def task(
    size: str = "m=300,n=260,k=70", arch: str = "sm_90", text: str = MATMUL, dtype: str = "float32"
) -> Task:
    program = LEVEL.load(text, {"size": size, "backend": f"cuda:{arch}", "dtype": dtype})
    return Task(program, LEVEL.target(program, 1), (LEVEL.objectives["time_s"],), LEVEL.version)


@pytest.mark.slow(after=1)
@compiles
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_a_tiled_product_compiles_without_spills(arch: str) -> None:
    source = kernel_source(gpu_program_of(task(arch=arch).program, Candidate(TILED)), CUDA)
    found = compile_cuda(source, arch)
    assert found.cubin[:4] == b"\x7fELF"
    assert found.spills == 0
    (statistics,) = found.statistics.values()
    assert 64 < statistics.registers <= 255
    assert statistics.shared == 4 * (16 * (128 + 4) + 16 * 128)


@compiles
def test_kernels_that_spill_registers_are_refused_before_they_are_launched() -> None:
    of, spilling = task(), Candidate((BlockTile("m", 16, 10), BlockTile("n", 16, 10), LaunchBounds(4)))
    kernels = gpu_program_of(of.program, spilling)
    source = kernel_source(kernels, CUDA)
    with pytest.raises(ScheduleError, match=r"a thread spills \d+ bytes of registers"):
        compiled_for(of.program, kernels, source, of.target, spills=False)


@compiles
def test_kernels_are_compiled_once_and_damaged_entries_of_the_cache_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = kernel_source(gpu_program_of(task().program, Candidate()), CUDA)
    first = compile_all([source, source, "void broken("], "sm_90")
    compiled = first[source]
    assert isinstance(compiled, CompiledCuda)
    assert isinstance(first["void broken("], TargetError)
    (entry,) = cubin_cache().folder.iterdir()
    for damaged in (b"", b"{}", entry.read_bytes()[:-1]):
        entry.write_bytes(damaged)
        assert compile_cuda(source, "sm_90") == compiled
    monkeypatch.setattr(cuda, "_compiler", lambda: {"nvrtc": "another"})
    compile_cuda(source, "sm_90")
    assert len([*cubin_cache().folder.iterdir()]) == 2


@compiles
def test_features_have_the_registers_that_the_compiler_gives_a_thread() -> None:
    of = task("m=512,n=512,k=64")
    space = LEVEL.space(of, "template")
    assert isinstance(space, GpuSpace)
    small = Candidate((BlockTile("m", 16, 2), BlockTile("n", 16, 2)))
    spilling = Candidate((BlockTile("m", 16, 10), BlockTile("n", 16, 10), LaunchBounds(4)))
    rows = space.features([small, spilling])
    for row, candidate in zip(rows, (small, spilling), strict=True):
        (taken,) = compile_cuda(kernel_source(space.kernels(candidate), CUDA), "sm_90").statistics.values()
        found = dict(zip(space.schema.names, row.tolist(), strict=True))
        assert 2 ** found["registers of a thread"] - 1 == pytest.approx(taken.registers)
        assert 2 ** found["bytes spilled by a thread"] - 1 == pytest.approx(taken.spills)
        assert found["share of the threads at once"] == taken.occupancy(256, Gpu.of(of.target))
    assert rows[1][-2] > 0 == rows[0][-2]


@pytest.mark.slow(after=2)
@compiles
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "float64"])
def test_all_functions_and_types_compile(dtype: str) -> None:
    functions = "exp(A[m,k]) + log(abs(A[m,k])) * tanh(B[k]) + sigmoid(sqrt(B[k])) - erf(relu(A[m,k])) / 3"
    text = (
        "C[m] += max(A[m,k], -2) * min(B[k], A[m,k]) - abs(B[k])"
        if dtype == "int8"
        else f"C[m] += {functions}"
    )
    program = parse(text, {"m": 40, "k": 9}, dtype=dtype if dtype != "int8" else {"A": "int8", "B": "int8"})
    compile_cuda(kernel_source(gpu_program_of(program, Candidate((BlockTile("m", 8, 2),))), CUDA), "sm_90")


@pytest.mark.skipif(not (find_nvrtc() and shutil.which("nvcc")), reason="NVRTC or nvcc is not installed")
def test_both_compilers_give_the_same_statistics() -> None:
    source = kernel_source(gpu_program_of(task().program, Candidate(TILED[:4])), CUDA)
    one, other = compile_cuda(source, "sm_90").statistics, compile_by_nvcc(source, "sm_90").statistics
    assert one.keys() == other.keys() == {"run0"}
    assert one["run0"].shared == other["run0"].shared > 0


@compiles
def test_an_error_of_the_compiler_is_one_line() -> None:
    with pytest.raises(TargetError, match=r"(nvcc|NVRTC) refuses the kernel: .*error"):
        compile_cuda("void broken(", "sm_90")


def test_statistics_are_read() -> None:
    text = """ptxas info    : Compiling entry function 'run0' for 'sm_90a'
ptxas info    : Function properties for run0
    96 bytes stack frame, 3264 bytes spill stores, 3300 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 33280 bytes smem
ptxas info    : Compiling entry function 'run1' for 'sm_90a'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers"""
    assert read_statistics(text) == {
        "run0": KernelStatistics(128, 3264, 3300, 33280),
        "run1": KernelStatistics(10),
    }


def test_occupancy_is_limited_by_registers_and_shared_memory() -> None:
    gpu = Gpu(registers=65536, threads=2048)
    assert KernelStatistics(32).occupancy(256, gpu) == 1.0
    assert KernelStatistics(128).occupancy(256, gpu) == 0.25
    assert KernelStatistics(255).occupancy(1024, gpu) == 0.0
    # Of 48 KiB, three blocks have 16 each.
    assert KernelStatistics(32, shared=16 << 10).occupancy(256, gpu) == 0.375


@compiles
def test_gpus_that_are_not_here_are_described() -> None:
    for arch, model in GPUS.items():
        target = cuda_target(arch)
        assert model.name in target.processor
        assert Gpu.of(target).units == model.units
    with pytest.raises(TargetError, match=r"no architecture 'sm_12'. Use cuda:ARCH with one of sm_75"):
        cuda_target("sm_12")


@compiles
def test_without_a_gpu_a_search_says_what_can_be_done() -> None:
    if _has_gpu():
        pytest.skip("this machine has a CUDA GPU")
    with pytest.raises(
        TargetError, match=r"this machine has no CUDA GPU.*\. Compile kernels here: planish batch"
    ):
        LEVEL.evaluator(task())


def _has_gpu() -> bool:
    try:
        cuda_driver.open_driver()
    except TargetError:
        return False
    return True


@compiles
def test_a_kernel_is_exported_with_its_cubin_and_a_launcher(tmp_path: Path) -> None:
    files = {file.suffix: file for file in LEVEL.export(task(), Candidate(TILED), tmp_path)}
    assert sorted(files) == [".c", ".cu", ".cubin", ".json"]
    record = json.loads(files[".json"].read_text())
    assert record["statistics"]["run0"]["spill_stores"] == 0
    assert record["kernels"][0] == {
        "name": "run0",
        "blocks": 3 * 3,
        "threads": 256,
        "arguments": ["A", "B", "C"],
        "shared_bytes": 4 * (16 * (128 + 4) + 16 * 128),
    }
    compile_launcher(files[".c"])


HEADERS = [
    *(Path(sysconfig.get_path("purelib"), "nvidia", name, "include") for name in ("cu13", "cuda_runtime")),
    Path("/usr/local/cuda/include"),
]
"""Where pip installs those of nvidia-cuda-runtime, and where the toolkit has them."""


def compile_launcher(file: Path) -> None:
    """Compile a host program, if the headers of CUDA are there."""
    found = next((folder for folder in HEADERS if (folder / "cuda.h").exists()), None)
    if not (shutil.which("gcc") and found):
        pytest.skip("gcc or cuda.h is not installed")
    words = ["gcc", "-Wall", "-Werror", "-c", f"-I{found}", file.name, "-o", "a.o"]
    subprocess.run(words, cwd=file.parent, check=True)


@compiles
def test_a_launcher_describes_tensors_to_the_driver(tmp_path: Path) -> None:
    of = task("m=130,n=256,k=128", "sm_90a", dtype="float16")
    tile = TensorTile("m", "n", "k", 4, 1, 1, 16, "wgmma")
    steps = (ReduceTile("k", 32), SharedTile("A"), SharedTile("B"), tile, BulkCopies(3))
    files = {file.suffix: file for file in LEVEL.export(of, Candidate(steps), tmp_path)}
    text = files[".c"].read_text()
    assert text.count("cuTensorMapEncodeTiled(") == 2
    # Buffers are A, B and C; the maps follow.
    assert '"run0", 6, 256, ' in text
    assert "{0, 1, 2, 3, 4}" in text
    compile_launcher(files[".c"])


@compiles
def test_a_batch_holds_compiled_candidates(tmp_path: Path) -> None:
    found = write_batch(task("m=64,n=48,k=40"), 3, 0, tmp_path)
    batch = read_batch(tmp_path)
    assert len(batch.candidates) == found.kept
    assert batch.candidates[0] == Candidate()
    assert batch.program == task("m=64,n=48,k=40").program
    assert batch.target == task().target
    assert len([*tmp_path.glob("*.cubin")]) == found.kept


# The driver


def _nothing(*args: object) -> int:
    del args
    return 0


class FakeDriver:
    """Memory on the host, and a record of the launches."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        self.launched: list[tuple[int, int, list[int]]] = []
        self.maps: list[tuple[Any, ...]] = []
        self.shared: list[int] = []
        self.dynamic: list[int] = []
        self.code = self.refused = 0
        self.room = 1 << 30

    def cuMemAlloc_v2(self, pointer: Any, size: Any) -> int:  # noqa: N802
        if sum(map(len, self.blocks.values())) + size.value > self.room:
            return 2
        block = ctypes.create_string_buffer(size.value)
        pointer._obj.value = ctypes.addressof(block)
        self.blocks[pointer._obj.value] = block
        return self.code

    def cuMemFree_v2(self, memory: Any) -> int:  # noqa: N802
        del self.blocks[memory.value]
        return 0

    def cuFuncSetAttribute(self, _function: Any, attribute: int, value: int) -> int:  # noqa: N802
        assert attribute == 8  # shared memory that is not in the kernel itself
        self.shared.append(value)
        return self.refused

    def cuMemcpyHtoD_v2(self, memory: Any, host: Any, size: Any) -> int:  # noqa: N802
        ctypes.memmove(memory.value, host.value, size.value)
        return 0

    def cuMemcpyDtoH_v2(self, host: Any, memory: Any, size: Any) -> int:  # noqa: N802
        ctypes.memmove(host.value, memory.value, size.value)
        return 0

    def cuLaunchKernel(self, _function: Any, *args: Any) -> int:  # noqa: N802
        given = args[8][:1]
        arguments = [ctypes.cast(each, ctypes.POINTER(ctypes.c_uint64)).contents.value for each in given]
        self.launched.append((args[0], args[3], arguments))
        self.dynamic.append(args[6])
        return 0

    def cuTensorMapEncodeTiled(self, place: Any, kind: int, rank: int, memory: Any, *args: Any) -> int:  # noqa: N802
        lists, numbers = [list(each) for each in args[:4]], args[4:]
        self.maps.append((place.value, kind, rank, memory.value, *lists, *numbers))
        return 0

    def cuEventElapsedTime(self, milliseconds: Any, *_: Any) -> int:  # noqa: N802
        milliseconds._obj.value = 1.5
        return 0

    def cuGetErrorString(self, _code: int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"what it says"
        return 0

    def __getattr__(self, name: str) -> Any:
        del name
        return _nothing


def test_the_driver_is_given_buffers_with_margins_and_a_grid() -> None:
    fake = FakeDriver()
    device = cuda_driver.CudaDevice(b"", cuda_driver.Driver(fake))
    memory, inner = device.allocate(100)
    assert inner.value - memory.value == MARGIN
    sent = np.arange(100 + 2 * MARGIN).astype(np.uint8)
    received = np.zeros_like(sent)
    device.upload(memory, sent)
    device.download(received, memory)
    assert np.array_equal(sent, received)
    assert device.run([Launch("run0", 9, 256, (inner,))]) == 1_500_000
    assert fake.launched == [(9, 256, [inner.value])]


@pytest.mark.parametrize(
    ("code", "kind", "hint"),
    [
        (2, TargetError, "Free memory of the GPU"),
        (209, TargetError, "Compile it for the GPU of this machine"),
        (222, TargetError, "Update NVIDIA's driver"),
        (700, DeviceLostError, "The kernel is to blame"),
    ],
)
def test_an_error_of_the_driver_is_one_line_with_what_to_do(
    code: int, kind: type[TargetError], hint: str
) -> None:
    fake = FakeDriver()
    device = cuda_driver.CudaDevice(b"", cuda_driver.Driver(fake))
    fake.code = code
    with pytest.raises(kind, match=rf"cuMemAlloc_v2: what it says \({code}\). {hint}"):
        device.allocate(100)


def test_more_shared_memory_than_a_kernel_has_by_itself_is_asked_for() -> None:
    """256 bytes more than CUDA allows in a kernel are given at each launch, or it is not launched."""
    of = task("m=386,n=4,k=64")
    kernels = gpu_program_of(of.program, Candidate((BlockTile("m", 193), SharedTile("A"))))
    fake = FakeDriver()
    inputs = {name: np.ones(of.program.type[name].shape, np.float32) for name in "AB"}
    device = cuda_driver.CudaDevice(b"", cuda_driver.Driver(fake))
    run = CompiledKernels(of.program, kernels, device).bind(inputs, {"C": np.ones((386, 4), np.float32)})
    fake.refused = 1
    for _ in range(2):
        with pytest.raises(TargetError, match="cuFuncSetAttribute"):
            run.repeat(1)
    assert not fake.launched
    fake.refused = 0
    run.repeat(2)
    assert fake.shared == [(48 << 10) + 256] * 3
    assert fake.dynamic == fake.shared[:2]


@compiles
def test_16_bytes_of_shared_memory_too_many_are_refused_before_the_launch() -> None:
    """A block of an H100 may have 227 KiB."""
    of, most = task("m=334,n=4,k=348"), 227 << 10
    kernels = gpu_program_of(of.program, Candidate((BlockTile("m", 167), SharedTile("A"))))
    source = kernel_source(kernels, CUDA)
    with pytest.raises(TargetError, match=f"a block shares {most + 16} bytes, the device has {most}"):
        compiled_for(of.program, kernels, source, of.target)


def test_memory_is_freed_where_the_device_has_too_little_for_a_candidate() -> None:
    of = task("m=64,n=64,k=64")
    kernels = gpu_program_of(of.program, Candidate((PackOperand("A"),)))
    fake = FakeDriver()
    fake.room = 3 * (4 * 64 * 64 + 2 * MARGIN)
    compiled = CompiledKernels(of.program, kernels, cuda_driver.CudaDevice(b"", cuda_driver.Driver(fake)))
    inputs, outputs = (
        {name: np.ones((64, 64), np.float32) for name in names} for names in (("A", "B"), ("C",))
    )
    for _ in range(2):
        with pytest.raises(TargetError, match="cuMemAlloc_v2"):
            compiled.bind(inputs, outputs)
        assert not fake.blocks


def test_a_function_that_an_old_driver_lacks_is_reported() -> None:
    with pytest.raises(TargetError, match=r"has no function cuTensorMapEncodeTiled. Update NVIDIA's driver"):
        cuda_driver.Driver(ctypes.CDLL(None))("cuTensorMapEncodeTiled")


def test_a_lost_device_is_one_candidates_fault_and_the_next_has_a_new_process() -> None:
    right = [Candidate((BlockTile("m", n),)) for n in (1, 2, 3)]
    with LocalExecutor(Losing()) as executor:
        executor.submit([right[0], Candidate(), *right[1:]])
        found = {each.candidate: each.outcome for each in executor.results()}
    lost = found[Candidate()]
    assert isinstance(lost, Failed)
    assert (lost.stage, lost.reason) == ("run", "device lost")
    assert "an illegal memory access" in lost.detail
    processes = [outcome.values["time_s"] for c in right if isinstance(outcome := found[c], Measured)]
    assert len(processes) == 3
    assert processes[0] != processes[1] == processes[2]
    assert executor.losses == {"its device was lost": 1}


def test_tensors_are_described_for_copies_in_boxes() -> None:
    program = parse(MATMUL, {"m": 130, "n": 256, "k": 128}, dtype="float16")
    tile = TensorTile("m", "n", "k", 4, 1, 1, 16, "wgmma")
    shared = (SharedTile("A"), SharedTile("B"))
    kernels = gpu_program_of(program, Candidate((ReduceTile("k", 32), *shared, tile, BulkCopies(3))))
    a, b = tensor_maps(kernels.kernels[0])
    assert (a.source, a.extents, a.strides, a.box, a.swizzle) == ("A", (128, 130), (256,), (32, 64), 2)
    assert (b.source, b.extents, b.strides, b.box, b.swizzle) == ("B", (256, 128), (512,), (64, 32), 3)
    fake = FakeDriver()
    device = cuda_driver.CudaDevice(b"", cuda_driver.Driver(fake))
    memory, inner = device.allocate(100)
    for _ in range(2):
        device.run([Launch("run0", 9, 256, (inner,), 1024, ((inner, a), (memory, b)))])
    first, second = fake.maps  # once, although the kernel is launched twice
    assert first[1:] == (1, 2, inner.value, [128, 130], [256], [32, 64], [1, 1], 0, 2, 3, 0)
    assert second[3] == memory.value
    assert first[0] % 64 == 0
