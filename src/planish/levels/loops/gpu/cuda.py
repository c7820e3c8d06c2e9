"""CUDA kernels: compilation for a GPU that need not be there, and what a compiled kernel takes.

The registers and spills of a kernel are known before anything is executed (`ptxas -v`): a kernel that needs
more registers than a thread may have is slow, and is not worth a launch.
NVRTC, CUDA's run-time compiler, needs no toolkit; where it is not installed, nvcc compiles. What is compiled
is kept in the user's caches, since it takes up to a second: a search describes a kernel to its cost model in
one process, and launches it in another.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planish.core import Target, TargetError, content_hash, usable_cores
from planish.core.disk_cache import DiskCache
from planish.levels.loops.gpu.devices import REGISTERS, Gpu, KernelStatistics
from planish.sandbox.tool import run_tool

_SECONDS = 300.0
_INSTALL = "Install NVRTC, pip install 'planish[cuda]', or the CUDA toolkit, with nvcc on the path."


@dataclass(frozen=True)
class GpuModel:
    """A GPU of the table.

    Args:
        name: an example of its architecture.
        units: multiprocessors.
        threads: of a multiprocessor at most.
        shared_kib: KiB of shared memory that a block may have.
        l2_mib: MiB of the last cache.
        bandwidth: GB/s from memory, of the architecture's fastest GPU, as are the following.
        gflops: peak in float32.
        tensor_gflops: peak of the tensor cores in float16.
    """

    name: str
    units: int
    threads: int
    shared_kib: int
    l2_mib: int
    bandwidth: int
    gflops: int
    tensor_gflops: int


GPUS: Mapping[str, GpuModel] = {
    "sm_75": GpuModel("T4", 40, 1024, 64, 4, 672, 16_300, 130_000),
    "sm_80": GpuModel("A100", 108, 2048, 163, 40, 2_039, 19_500, 312_000),
    "sm_86": GpuModel("RTX 3090", 82, 1536, 99, 6, 1_008, 40_000, 160_000),
    "sm_89": GpuModel("RTX 4090", 128, 1536, 99, 72, 1_008, 91_600, 362_000),
    "sm_90": GpuModel("H100", 132, 2048, 227, 50, 4_800, 66_900, 989_000),
    "sm_90a": GpuModel("H100", 132, 2048, 227, 50, 4_800, 66_900, 989_000),
    "sm_100": GpuModel("B200", 148, 2048, 227, 126, 8_000, 80_000, 2_250_000),
    "sm_120": GpuModel("RTX 5090", 170, 1536, 99, 96, 1_792, 126_000, 504_000),
}
"""Architecture to a GPU that has it: from the vendor's data sheets and programming guide."""


def nvcc_path() -> str:
    """Find the compiler; raises TargetError where it is not installed."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not found:
        raise TargetError("the target 'cuda' needs a compiler, which is not installed", _INSTALL)
    return found


@cache
def nvcc_version() -> str:
    """Return the compiler's version."""
    text = run_tool([nvcc_path(), "--version"], seconds=_SECONDS).output.decode(errors="replace")
    found = re.search(r"V([\d.]+)", text)
    return found[1] if found else "unknown"


def cuda_target(arch: str) -> Target:
    """Describe a GPU by its architecture, from the table.

    Args:
        arch: such as "sm_90".

    Raises:
        TargetError: the architecture is not in the table, or nvcc is not installed.
    """
    if arch not in GPUS:
        what = f"there is no architecture '{arch}'" if arch else "a CUDA target needs an architecture"
        raise TargetError(what, f"Use cuda:ARCH with one of {', '.join(GPUS)}.")
    model = GPUS[arch]
    gpu = Gpu(
        units=model.units,
        shared=model.shared_kib << 10,
        registers=REGISTERS,
        threads=model.threads,
        tensor=int(arch.removeprefix("sm_").removesuffix("a")) >= 80,
        groups=arch == "sm_90a",
        l2=model.l2_mib << 20,
        bandwidth=model.bandwidth,
        gflops=model.gflops,
        tensor_gflops=model.tensor_gflops,
    )
    toolchain = {"backend": f"cuda:{arch}", **_compiler()}
    return Target(f"{model.name} ({arch})", gpu.features | {"cuda"}, 1, toolchain)


def _compiler() -> Mapping[str, str]:
    """Return the name and version of the compiler: NVRTC, or else nvcc."""
    library = find_nvrtc()
    return {"nvrtc": nvrtc_version(library)} if library else {"nvcc": nvcc_version()}


@dataclass(frozen=True)
class CompiledCuda:
    """Kernels, compiled.

    Args:
        cubin: what the driver loads.
        statistics: kernel to what it takes.
    """

    cubin: bytes
    statistics: Mapping[str, KernelStatistics]

    @property
    def spills(self) -> int:
        """Count the bytes that threads of all kernels spill."""
        return sum(each.spills for each in self.statistics.values())


def cubin_cache() -> DiskCache:
    """Return the cache of what was compiled, among the user's caches."""
    return DiskCache.of_user("cuda")


def compile_cuda(source: str, arch: str) -> CompiledCuda:
    """Compile kernels, or return what was compiled before from the cache.

    Args:
        source: in CUDA C++.
        arch: of the GPU, such as "sm_90".

    Raises:
        TargetError: there is no compiler, or it refuses the source; the message has its first error.
    """
    kept, key = cubin_cache(), content_hash(json.dumps([arch, _compiler(), source]))
    if known := _read_entry(kept.get(key) or b""):
        return known
    if library := find_nvrtc():
        cubin, log = compile_by_nvrtc(library, source, arch)
        compiled = CompiledCuda(cubin, read_statistics(log))
    else:
        compiled = compile_by_nvcc(source, arch)
    kept.put(key, _entry_of(compiled))
    return compiled


def _entry_of(compiled: CompiledCuda) -> bytes:
    """Write an entry of the cache: a line with the cubin's hash and the statistics, then the cubin."""
    statistics = {name: asdict(each) for name, each in compiled.statistics.items()}
    return json.dumps([sha256(compiled.cubin).hexdigest(), statistics]).encode() + b"\n" + compiled.cubin


def _read_entry(entry: bytes) -> CompiledCuda | None:
    """Read an entry of the cache; None where it is damaged, as after a power cut."""
    line, _, cubin = entry.partition(b"\n")
    with suppress(ValueError):
        digest, statistics = json.loads(line)
        if digest == sha256(cubin).hexdigest():
            return CompiledCuda(cubin, {name: KernelStatistics(**each) for name, each in statistics.items()})
    return None


def compile_all(sources: Iterable[str], arch: str) -> Mapping[str, CompiledCuda | TargetError]:
    """Compile several sources on all cores; return, for each, its kernels or why there are none."""

    def attempt(source: str) -> CompiledCuda | TargetError:
        try:
            return compile_cuda(source, arch)
        except TargetError as error:
            return error

    unique = [*dict.fromkeys(sources)]
    with ThreadPoolExecutor(usable_cores()) as pool:
        return dict(zip(unique, pool.map(attempt, unique), strict=True))


def compile_by_nvcc(source: str, arch: str) -> CompiledCuda:
    """Compile kernels by the toolkit's compiler; see `compile_cuda`."""
    with tempfile.TemporaryDirectory(prefix="planish-cuda-") as folder:
        code, cubin = Path(folder) / "kernels.cu", Path(folder) / "kernels.cubin"
        code.write_text(source)
        options = [f"-arch={arch}", "-cubin", "-O3", "-Xptxas", "-v", "-o", str(cubin), str(code)]
        ran = run_tool([nvcc_path(), *options], seconds=_SECONDS, folder=folder)
        if ran.code:
            text = ran.message + ran.output.decode(errors="replace")
            errors = [line for line in text.splitlines() if "error" in line or "fatal" in line]
            raise TargetError(f"nvcc refuses the kernel: {(errors or [text.strip()])[0]}")
        return CompiledCuda(cubin.read_bytes(), read_statistics(ran.message))


def cubin_path(folder: Path, source: str) -> Path:
    """Return where the cubin of a source is."""
    return folder / f"{content_hash(source)[:16]}.cubin"


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


def read_statistics(text: str) -> dict[str, KernelStatistics]:
    """Read what `ptxas -v` prints: kernel to what it takes."""
    found: dict[str, KernelStatistics] = {}
    name, spills = "", (0, 0)
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            name, spills = entry[1], (0, 0)
        elif spilled := _SPILLS.search(line):
            spills = int(spilled[1]), int(spilled[2])
        elif (used := _USED.search(line)) and name:
            found[name] = KernelStatistics(int(used[1]), *spills, int(used[2] or 0))
    return found


# NVRTC


@cache
def find_nvrtc() -> Any:
    """Load the library of the package nvidia-cuda-nvrtc; None where it is not installed."""
    spec = find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for path in sorted(Path(folder).glob("**/libnvrtc.so.*")):
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    return None


def nvrtc_version(library: Any) -> str:
    """Return the library's version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def compile_by_nvrtc(library: Any, source: str, arch: str) -> tuple[bytes, str]:
    """Compile kernels; return the cubin and what ptxas prints.

    Args:
        library: from `find_nvrtc`.
        source: in CUDA C++, without headers.
        arch: of the GPU, such as "sm_90".

    Raises:
        TargetError: the source is refused; the message has its first error.
    """
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    try:
        options = [f"--gpu-architecture={arch}".encode(), b"--ptxas-options=-v"]
        code = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = _read(library, "ProgramLog", program).rstrip(b"\0").decode(errors="replace")
        if code:
            errors = [line for line in log.splitlines() if "error" in line or "fatal" in line]
            raise TargetError(f"NVRTC refuses the kernel: {(errors or [f'error {code}'])[0]}")
        return _read(library, "CUBIN", program), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _read(library: Any, what: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, content)
    return content.raw
