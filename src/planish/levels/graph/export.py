"""Writing a result for use without planish."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planish.core import Candidate, Task
from planish.levels.graph.installed import OPENVINO, versions
from planish.levels.graph.pass_probe import PassProbe
from planish.levels.graph.passes import selection_of
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.sessions import PROVIDERS, configuration, level_name, weights_of
from planish.levels.graph.task_setup import settings_of

_SCRIPT = '''"""Runs a model that planish optimised; needs onnxruntime alone."""

import json, pathlib, numpy, onnxruntime

here = pathlib.Path(__file__).parent
chosen = json.loads((here / {facts!r}).read_text())
options = onnxruntime.SessionOptions()
for name, value in chosen["session"].items():
    kind = type(getattr(options, name))
    setattr(options, name, getattr(kind, value) if isinstance(value, str) else value)
path, disabled = str(here / chosen["model"]), chosen["disabled_optimizers"]
session = onnxruntime.InferenceSession(path, options, chosen["providers"], disabled_optimizers=disabled)


def ones(dtype, shape):
    if dtype == "bfloat16":  # NumPy has no such type: 0x3F80 is its 1, and 16 its number in ONNX
        bits = numpy.full(shape, 0x3F80, "uint16")
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones(shape, dtype))


feed = {{name: ones(dtype, shape) for name, dtype, shape in chosen["inputs"]}}
for port, value in zip(session.get_outputs(), session.run_with_ort_values(None, feed)):
    print(port.name, port.type, value.shape() if value.is_tensor() else "")
'''

_BY_OPENVINO = '''"""Runs a model that planish optimised; needs openvino and numpy."""

import json, pathlib, numpy, openvino

here = pathlib.Path(__file__).parent
chosen = json.loads((here / {facts!r}).read_text())
model = openvino.Core().compile_model(str(here / chosen["model"]), "CPU", chosen["openvino"])
found = model({{name: numpy.ones(shape, dtype) for name, dtype, shape in chosen["inputs"]}})
for port in model.outputs:
    print(port.any_name, port.element_type.to_string(), list(found[port].shape))
'''

_ANSWER_S = 600.0
"""How long passes may take."""


def export_model(task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write an optimised model, and a script that runs it with onnxruntime alone.

    Returns:
        What `deliver_model` does, and the script. It raises the same too.
    """
    files = deliver_model(task, candidate, path)
    name = task.program.file.stem
    script = path / f"run_{name}.py"
    elsewhere = settings_of(task).having(selection_of(candidate).session).elsewhere
    script.write_text((_BY_OPENVINO if elsewhere else _SCRIPT).format(facts=files[-1].name), encoding="utf-8")
    return [*files, script]


def deliver_model(task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write an optimised model and what was chosen for it.

    Returns:
        The files: the model; its weights, where it was optimised offline; the passes and the session's
        settings as JSON.

    Raises:
        PassProbeError: a pass fails, or ONNX Runtime does not take the model.
        OSError: a file cannot be written.
    """
    program, chosen = task.program, selection_of(candidate)
    settings = settings_of(task).having(chosen.session)
    name = program.file.stem
    model, file = path / f"{name}.planish.onnx", path / f"{name}.planish.json"
    path.mkdir(parents=True, exist_ok=True)
    # By a process in a sandbox: passes read a file of others, and may crash.
    with closing(PassProbe(program, settings.of_onnxruntime, _ANSWER_S)) as probe:
        probe.write(chosen.rewrites, model, sorted(chosen.disabled), offline=chosen.offline)
    facts: dict[str, Any] = {
        "model": model.name,
        "inputs": [[port.name, port.dtype, port.shape] for port in program.inputs],
        "passes": list(chosen.rewrites),
        "source": {"path": program.path, "digest": program.digest},
    }
    if settings.elsewhere:
        needs = {OPENVINO: version(OPENVINO)}
        facts |= {"needs": needs, OPENVINO: configuration(settings), "versions": {**versions(), **needs}}
    else:
        facts |= {
            "providers": list(PROVIDERS[settings.provider]),
            "session": {
                "intra_op_num_threads": settings.cores,
                "inter_op_num_threads": settings.cores,
                "enable_cpu_mem_arena": settings.arena,
                "execution_mode": f"ORT_{settings.execution.upper()}",
                # What was optimised offline is loaded as it is.
                "graph_optimization_level": level_name("none" if chosen.offline else settings.optimization),
            },
            "disabled_optimizers": [] if chosen.offline else sorted(chosen.disabled),
            "left_out": sorted(chosen.disabled),
            "offline": chosen.offline,
            "versions": dict(versions()),
        }
    file.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    weights = weights_of(model)
    return [model, *([weights] if chosen.offline and weights.exists() else []), file]
