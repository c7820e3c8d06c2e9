"""Models by OpenVINO, a second runtime, with numbers as exact as ONNX Runtime's unless bfloat16 is chosen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.graph.installed import OPENVINO_BFLOAT16
from planish.graph.running.ort_session import ModelSession, RefusedError, SessionSettings, first_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class OpenVinoSession(ModelSession):
    """A model that OpenVINO compiled."""

    def run(self, feed: Mapping[str, NDArray[np.generic]]) -> Sequence[Any]:
        """Give the outputs for some inputs, in the model's order.

        Raises:
            RefusedError: the runtime fails.
        """
        try:
            # Not copied: a copy would be written into the arrays that `bound` shares with the runtime.
            found = self.inner.infer(dict(feed), share_inputs=True)
        except (RuntimeError, TypeError, ValueError) as error:
            raise _refused(error) from error
        return [found[place] for place in range(len(found))]

    def bound(self, feed: Mapping[str, NDArray[np.generic]]) -> Callable[[], Sequence[Any]]:
        """Give what runs the model on some inputs and nothing besides, for timing it."""
        given, infer = dict(feed), self.inner.infer
        return lambda: infer(given, share_inputs=True, share_outputs=True)


def open_openvino(model: Path, settings: SessionSettings) -> OpenVinoSession:
    """Compile a model's file.

    Args:
        model: the file.
        settings: of the session; the cores alone count.

    Raises:
        RefusedError: the runtime is not there, or does not take the model.
    """
    start = time.perf_counter()
    try:
        runtime: Any = import_module("openvino")
        request = (
            runtime.Core().compile_model(str(model), "CPU", configuration(settings)).create_infer_request()
        )
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        raise _refused(error) from error
    return OpenVinoSession(request, time.perf_counter() - start)


def configuration(settings: SessionSettings) -> dict[str, int | str]:
    """Give what OpenVINO is told.

    On processors that have bfloat16 it computes in that by default; here it is told not to unless a candidate
    chose it, so that answers can be compared with the model's own.
    """
    return {
        "INFERENCE_NUM_THREADS": settings.cores,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if settings.provider == OPENVINO_BFLOAT16 else "f32",
    }


def _refused(error: Exception) -> RefusedError:
    """Tell the reason, which OpenVINO puts last, after the places of its own source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Exception from", "Check '"))]
    return RefusedError(f"OpenVINO: {(told or [first_line(error)])[0]}")
