"""What this machine offers the level: ONNX Runtime, the passes that it has, and counters."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from planish.core import PlanishError, Target, TargetError, processor, usable_cores
from planish.graph.installed import OPENVINO, has_openvino, session_settings, versions
from planish.graph.running import PROVIDERS
from planish.sandbox.confinement import told


def graph_target(cores: int, session: Mapping[str, str], *, providers: bool = False) -> Target:
    """Describe this machine, and the session that models run in.

    Args:
        cores: threads of the session.
        session: setting to value; what is missing has its default.
        providers: whether candidates may choose another runtime.

    Raises:
        TargetError: there are not so many cores, a library or a runtime is missing, or it has no CUDA.
    """
    there = usable_cores()
    if not 1 <= cores <= there:
        raise TargetError(f"{cores} cores asked for, this machine offers {there}", "Use --cores.")
    settings = session_settings(session)
    if settings["provider"] == "cuda" and not _has_cuda():
        raise TargetError("this ONNX Runtime has no CUDA", "Install onnxruntime-gpu in its place.")
    second = {OPENVINO: _openvino_version()} if providers or settings["provider"] == OPENVINO else {}
    return Target(processor(), frozenset(), cores, {**versions(), **second, **settings})


def _openvino_version() -> str:
    if not has_openvino():
        raise TargetError("OpenVINO is not installed", "Install it with: pip install 'planish[openvino]'.")
    return version(OPENVINO)


def _has_cuda() -> bool:
    import onnxruntime

    return PROVIDERS["cuda"][0] in onnxruntime.get_available_providers()


def machine_facts() -> Mapping[str, str]:
    """Tell what is here: the processor, the libraries, the passes, and the counters of power and heat."""
    from planish.graph.counters import counter_facts
    from planish.graph.passes import passes

    try:
        found = {**versions(), "passes": str(len(passes()))}
    except PlanishError as error:
        return {"processor": processor(), "onnxruntime": str(error)}
    return {"processor": processor(), **found, **counter_facts(), "candidates are confined by": told()}
