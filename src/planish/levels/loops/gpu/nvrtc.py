"""NVRTC, CUDA's run-time compiler: a library that compiles kernels without a toolkit and without a GPU."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planish.core import TargetError


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
            errors = [line for line in log.splitlines() if "error" in line]
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
