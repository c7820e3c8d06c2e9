"""The ways to run a model that `beside.py` compares: files by several optimizers, on two runtimes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from planish.levels.graph.feeds import Feed
from planish.levels.graph.sessions import SessionSettings, open_session

Answer = Callable[[Feed], list[Any]]
"""Gives a model's outputs for some inputs."""


@dataclass(frozen=True)
class Way:
    """A model's file, and what runs it.

    Args:
        tool: what made the file: "onnxsim", "onnxslim" or "planish"; or "as it came", or "itself again".
        runtime: "ONNX Runtime" or "OpenVINO".
        make: opens it.
    """

    tool: str
    runtime: str
    make: Callable[[], Answer]

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.tool} | {self.runtime}"


def ways(model: Path, folder: Path, seconds: float) -> tuple[list[Way], Mapping[str, Any]]:
    """Make each file, and give what runs it; and how long each tool took, or why it failed."""
    files: dict[str, Path] = {"as it came": model}
    outcomes: dict[str, Any] = {}
    makers = {"onnxsim": _onnxsim, "onnxslim": _onnxslim, "planish": partial(_planish, seconds=seconds)}
    for tool, make in makers.items():
        start = time.monotonic()
        try:
            files[tool] = make(model, folder)
            outcomes[tool] = round(time.monotonic() - start, 1)
        except Exception as error:  # noqa: BLE001  tools raise whatever they like
            outcomes[tool] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    found = [Way(tool, "ONNX Runtime", partial(_by_onnxruntime, file)) for tool, file in files.items()]
    found += [Way(tool, "OpenVINO", partial(_by_openvino, file)) for tool, file in files.items()]
    # What differs from the first by noise alone.
    found.append(Way("itself again", "ONNX Runtime", partial(_by_onnxruntime, model)))
    found.append(Way("as it came", "OpenVINO, bfloat16", partial(_by_openvino, model, precision="")))
    return found, outcomes


def _onnxsim(model: Path, folder: Path) -> Path:
    import onnx

    simplify: Any = import_module("onnxsim").simplify
    made, fine = simplify(onnx.load(model))
    if not fine:
        raise ValueError("its own check fails")
    file = folder / "onnxsim.onnx"
    onnx.save(made, file)
    return file


def _onnxslim(model: Path, folder: Path) -> Path:
    slim: Any = import_module("onnxslim").slim
    file = folder / "onnxslim.onnx"
    slim(str(model), str(file))
    return file


def _planish(model: Path, folder: Path, seconds: float) -> Path:
    """Search as a user does, and give the model that the command leaves."""
    command = [
        *(str(Path(sys.executable).with_name("planish")), "tune", str(model), "--objective", "latency"),
        *("--seconds", str(seconds), "--store", str(folder / "store.db"), "--export", str(folder)),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ValueError((done.stderr.splitlines() or ["no word"])[-1])
    return folder / f"{model.stem}.planish.onnx"


def _by_onnxruntime(file: Path) -> Answer:
    """Open a file under the runtime's defaults, or as planish's card beside it says."""
    card = file.with_suffix(".json")
    if not file.stem.endswith(".planish") or not card.exists():
        session = open_session(file, SessionSettings())
        return lambda feed: list(session.run(feed))
    chosen = json.loads(card.read_text(encoding="utf-8"))
    level = chosen["session"]["graph_optimization_level"].removeprefix("ORT_ENABLE_").lower()
    as_it_is = level == "ort_disable_all"
    settings = SessionSettings(optimization="none" if as_it_is else level)
    own = open_session(file, settings, chosen["disabled_optimizers"], as_it_is=as_it_is)
    return lambda feed: list(own.run(feed))


def _by_openvino(file: Path, precision: str = "f32") -> Answer:
    """Compile a file for one thread, with numbers of 32 bits, or as OpenVINO itself would."""
    openvino: Any = import_module("openvino")
    config = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(
        str(file), "CPU", config | ({"INFERENCE_PRECISION_HINT": precision} if precision else {})
    )
    request = compiled.create_infer_request()
    count = len(compiled.outputs)

    def answer(feed: Feed) -> list[Any]:
        found = request.infer(feed, share_inputs=True, share_outputs=True)
        return [found[place] for place in range(count)]

    return answer
