"""TVM's MetaSchedule on a matrix multiplication."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

TRIALS = 64
"""As in the thesis."""


@cache
def load() -> Any | None:
    """Import TVM and what its tuner needs, half a minute's work; None where something is not installed."""
    try:
        for name in ("xgboost", "cloudpickle", "psutil", "tvm_ffi", "tvm"):
            import_module(name)
        # The tuner imports this otherwise: twenty seconds that would count as tuning.
        import_module("tvm.s_tir.tensor_intrin")
    except ImportError as error:
        print(f"TVM is not installed: {error}")
        return None
    return import_module("tvm")


def call(
    m: int, n: int, k: int, arrays: Mapping[str, np.ndarray[Any, Any]], trials: int = TRIALS
) -> Callable[[], object] | None:
    """Tune C = A B for this processor and one thread.

    The kernel keeps to one thread if the variable TVM_NUM_THREADS says so when TVM is imported. Candidates
    are built on every core, as TVM has it by default.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        arrays: A, B and C, in float32, each at a cache line.
        trials: candidates to measure.

    Returns:
        What computes C; None where TVM is not installed.

    Raises:
        RuntimeError: no candidate works.
    """
    tvm = load()
    if tvm is None:
        return None
    schedules: Any = import_module("tvm.s_tir.meta_schedule")
    function = _matmul(m, n, k)
    codegen = tvm.target.codegen
    target = tvm.target.Target({"kind": "llvm", "mcpu": codegen.llvm_get_system_cpu(), "num-cores": 1})
    # Every tuning sets the level anew.
    logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        found = schedules.tune_tir(
            function, target, folder, trials, builder=_builder(schedules), database="memory", seed=0
        )
    best = schedules.tir_integration.compile_tir(found, function, target)
    if best is None:
        raise RuntimeError(f"TVM: none of {trials} candidates for {m} x {n} x {k} could be built and run")
    from_dlpack: Any = import_module("tvm_ffi").from_dlpack
    return partial(tvm.compile(best.mod, target=target)["main"], *(from_dlpack(arrays[x]) for x in "ABC"))


def _builder(schedules: Any) -> Any:
    """Make TVM's own builder, less an import.

    Every new worker imports the intrinsics of all GPUs, twenty seconds of the thirty that its first
    candidate has; on a busy machine each candidate so ends by the timeout, with its worker.
    """

    # Workers get this by value, for they cannot import this file.
    def register() -> None:
        tvm: Any = import_module("tvm")
        build: Any = import_module("tvm.driver").build
        transform: Any = import_module("tvm.s_tir.transform")

        def default_build(module: Any, target: Any, _params: Any) -> Any:
            plain = transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
            return build(plain, target=target)

        tvm.register_global_func("planish.build", default_build)

    return schedules.builder.LocalBuilder(f_build="planish.build", initializer=register)


def _matmul(m: int, n: int, k: int) -> Any:
    te: Any = import_module("tvm.te")
    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="r")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, r] * b[r, j], axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])
