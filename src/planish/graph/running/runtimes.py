"""Sessions of the runtime that the settings name."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from planish.graph.running.openvino import open_openvino
from planish.graph.running.ort_session import ModelSession, SessionSettings, open_ort_session


def open_session(
    model: Path,
    settings: SessionSettings,
    disabled: Collection[str] = (),
    *,
    as_it_is: bool = False,
    keep: Path | None = None,
    apart: bool = False,
    verbose: bool = False,
) -> ModelSession:
    """Make a session of a model's file.

    Args:
        model: the file.
        settings: of the session; they name the runtime. What follows is told to ONNX Runtime alone, see
            `planish.graph.running.ort_session.open_ort_session`.
        disabled: its passes that are left out.
        as_it_is: whether it optimises nothing.
        keep: where the model is written that it made.
        apart: whether the weights of that are kept beside it.
        verbose: whether it tells what its passes do.

    Raises:
        RefusedError: the runtime does not take the model.
    """
    if settings.elsewhere:
        return open_openvino(model, settings)
    return open_ort_session(
        model, settings, disabled, as_it_is=as_it_is, keep=keep, apart=apart, verbose=verbose
    )
