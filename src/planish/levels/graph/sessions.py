"""Sessions of ONNX Runtime and OpenVINO.

ONNX Runtime has no NumPy array for bfloat16, so such numbers go in and out as the runtime's own values.
OpenVINO computes with numbers as exact as ONNX Runtime's, unless a candidate chooses bfloat16.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError, ScheduleError
from planish.levels.graph.installed import BY_OPENVINO, OPENVINO_BFLOAT16

_BFLOAT16 = "tensor(bfloat16)"
PROVIDERS = {"cpu": ("CPUExecutionProvider",), "cuda": ("CUDAExecutionProvider", "CPUExecutionProvider")}
"""Setting to the runtime's names; what the first cannot run, the second does."""
_SILENT = 4  # fatal errors alone; the others are raised
_VERBOSE = 0
_WEIGHTS = "session.optimized_model_external_initializers"
_FOLDER = "session.model_external_initializers_file_folder_path"
_SMALL = "1024"  # bytes of weights that stay in the model


class RefusedError(PlanishError):
    """ONNX Runtime does not load or run a model."""

    exit_code = 3


@dataclass(frozen=True)
class SessionSettings:
    """Settings of a session.

    Args:
        cores: threads within an operator.
        arena: whether memory is kept for the next call.
        provider: one of `PROVIDERS`, or one of `BY_OPENVINO`, which is another runtime: of the other settings
            only the cores are its.
    """

    cores: int = 1
    optimization: str = "all"
    execution: str = "sequential"
    arena: bool = True
    provider: str = "cpu"

    @staticmethod
    def of(cores: int, toolchain: Mapping[str, str]) -> SessionSettings:
        """Read the settings that a target names."""
        names = ("optimization", "execution", "provider")
        given = {name: toolchain[name] for name in names if name in toolchain}
        return SessionSettings(cores, arena=toolchain.get("arena", "on") == "on", **given)

    @property
    def values(self) -> Mapping[str, str]:
        """All settings by their names on the command line; `threads` are the cores."""
        return {
            "optimization": self.optimization,
            "execution": self.execution,
            "provider": self.provider,
            "arena": "on" if self.arena else "off",
            "threads": str(self.cores),
        }

    @property
    def runtime(self) -> str:
        """Return the name of the runtime, for people."""
        return "OpenVINO" if self.elsewhere else "ONNX Runtime"

    @property
    def elsewhere(self) -> bool:
        """Return whether another runtime than ONNX Runtime runs models."""
        return self.provider in BY_OPENVINO

    @property
    def of_onnxruntime(self) -> SessionSettings:
        """These settings, of ONNX Runtime: it analyses passes, and its answers are the reference."""
        return replace(self, provider="cpu") if self.elsewhere else self

    def having(self, changes: Mapping[str, str]) -> SessionSettings:
        """Return these settings with some changed.

        Raises:
            ScheduleError: one of them has its value already, or the machine has fewer cores.
        """
        wanted = {**self.values, **changes}
        for name, value in changes.items():
            if self.values[name] == value:
                raise ScheduleError(f"the session has {name}={value} already", "Leave this step out.")
        if int(wanted["threads"]) > self.cores:
            raise ScheduleError(f"{wanted['threads']} threads on {self.cores} cores", "See cores=.")
        return SessionSettings.of(int(wanted["threads"]), wanted)


@dataclass(frozen=True)
class ModelSession:
    """A model that is ready to run.

    Args:
        bfloat16: whether inputs or outputs are of a type that NumPy lacks.
    """

    inner: Any
    seconds: float
    bfloat16: bool = False

    def run(self, feed: Mapping[str, NDArray[np.generic]]) -> Sequence[Any]:
        """Return the outputs for some inputs, in the model's order.

        Raises:
            RefusedError: the runtime fails.
        """
        try:
            found = self.bound(feed)()
        except _refusals() as error:
            raise RefusedError(first_line(error)) from error
        return [_array(value) for value in found] if self.bfloat16 else found

    def bound(self, feed: Mapping[str, NDArray[np.generic]]) -> Callable[[], Sequence[Any]]:
        """Return a function that runs the model on some inputs and nothing besides, for timing it."""
        if self.bfloat16:
            values = {name: _value(array) for name, array in feed.items()}
            return partial(self.inner.run_with_ort_values, None, values)
        return partial(self.inner.run, None, feed)


def _value(array: NDArray[Any]) -> Any:
    """Return the runtime's own value of an array."""
    import onnx
    import onnxruntime as ort

    if array.dtype.name != "bfloat16":
        return ort.OrtValue.ortvalue_from_numpy(array)
    bits = np.ascontiguousarray(array).view(np.uint16)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)


def _array(value: Any) -> NDArray[Any]:
    """Copy a value of the runtime: its memory goes with it."""
    import ml_dtypes

    if value.data_type() != _BFLOAT16:
        return value.numpy()
    shape = value.shape()
    content = ctypes.string_at(value.data_ptr(), math.prod(shape) * 2)
    return np.frombuffer(content, ml_dtypes.bfloat16).reshape(shape)


class _OpenVinoSession(ModelSession):
    """A model that OpenVINO compiled."""

    def run(self, feed: Mapping[str, NDArray[np.generic]]) -> Sequence[Any]:
        try:
            # Not copied: a copy would be written into the arrays that `bound` shares with the runtime.
            found = self.inner.infer(dict(feed), share_inputs=True)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _refused(error) from error
        return [found[index] for index in range(len(found))]

    def bound(self, feed: Mapping[str, NDArray[np.generic]]) -> Callable[[], Sequence[Any]]:
        return partial(self.inner.infer, dict(feed), share_inputs=True, share_outputs=True)


def open_session(
    model: Path | bytes,
    settings: SessionSettings,
    disabled: Collection[str] = (),
    *,
    as_it_is: bool = False,
    keep: Path | None = None,
    profile: Path | None = None,
    apart: bool = False,
    weights: Path | None = None,
    verbose: bool = False,
) -> ModelSession:
    """Make a session of a model.

    Args:
        model: its file, or its bytes.
        settings: of the session; they name the runtime. What follows is for ONNX Runtime alone.
        disabled: its passes that are left out; it ignores names that it does not know.
        as_it_is: whether the runtime optimizes nothing.
        keep: where the model is written that the runtime made of it.
        profile: begins the name of the file to which `end_profiling` writes the time of each node.
        apart: whether its weights are kept beside it (see `weights_of`): the runtime maps that file, and does
            not read it.
        weights: folder of the files of its weights, of a model that is given as bytes and refers to some.
        verbose: whether the runtime reports on standard error what its passes do.

    Raises:
        RefusedError: the runtime does not take the model.
    """
    if settings.elsewhere:
        assert isinstance(model, Path)
        return _open_openvino(model, settings)
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = _VERBOSE if verbose else _SILENT
    options.intra_op_num_threads = settings.cores
    options.inter_op_num_threads = settings.cores
    options.enable_cpu_mem_arena = settings.arena
    level = "none" if as_it_is else settings.optimization
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level_name(level))
    options.execution_mode = getattr(ort.ExecutionMode, f"ORT_{settings.execution.upper()}")
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    if keep is not None:
        options.optimized_model_filepath = str(keep)
        if apart:
            # Kept as kernels want them they would load faster still, but some models then crash.
            options.add_session_config_entry(f"{_WEIGHTS}_file_name", weights_of(keep).name)
            options.add_session_config_entry(f"{_WEIGHTS}_min_size_in_bytes", _SMALL)
    if weights is not None:
        options.add_session_config_entry(_FOLDER, str(weights))
    out, providers = sorted(disabled), list(PROVIDERS[settings.provider])
    start = time.perf_counter()
    try:
        made = ort.InferenceSession(
            str(model) if isinstance(model, Path) else model, options, providers, disabled_optimizers=out
        )
    except _refusals() as error:
        raise RefusedError(first_line(error)) from error
    seconds = time.perf_counter() - start
    if made.get_providers()[0] != providers[0]:  # the runtime takes the next one without a word
        raise RefusedError(f"{providers[0]} does not start here")
    ports = [*made.get_inputs(), *made.get_outputs()]
    return ModelSession(made, seconds, any(port.type == _BFLOAT16 for port in ports))


def weights_of(kept: Path) -> Path:
    """Name the file of the weights of a model that were kept apart; it is missing where they are few."""
    return kept.with_suffix(".data")


def level_name(optimization: str) -> str:
    """Return ONNX Runtime's name for a setting of `optimization`."""
    return "ORT_DISABLE_ALL" if optimization == "none" else f"ORT_ENABLE_{optimization.upper()}"


@cache
def _refusals() -> tuple[type[Exception], ...]:
    """List the runtime's errors: one class for each of its status codes."""
    state = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    found = [each for each in vars(state).values() if isinstance(each, type)]
    return (*(each for each in found if issubclass(each, Exception)), RuntimeError)


def first_line(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _open_openvino(model: Path, settings: SessionSettings) -> ModelSession:
    """Compile a model's file; of the settings the cores and the precision count."""
    start = time.perf_counter()
    try:
        runtime: Any = import_module("openvino")
        compiled = runtime.Core().compile_model(str(model), "CPU", configuration(settings))
        request = compiled.create_infer_request()
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        raise _refused(error) from error
    return _OpenVinoSession(request, time.perf_counter() - start)


def configuration(settings: SessionSettings) -> dict[str, int | str]:
    """Return the configuration of OpenVINO.

    On processors that have bfloat16 it computes in that by default; here it does not unless a candidate
    chose it, so that answers can be compared with the model's own.
    """
    return {
        "INFERENCE_NUM_THREADS": settings.cores,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if settings.provider == OPENVINO_BFLOAT16 else "f32",
    }


def _refused(error: Exception) -> RefusedError:
    """Return an error with the reason, which OpenVINO puts last, after locations in its own source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if not line.startswith(("Exception from", "Check '"))]
    return RefusedError(f"OpenVINO: {(reasons or [first_line(error)])[0]}")
