"""Peak memory of a model, measured in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from planish.levels.graph.feeds import Feed
from planish.levels.graph.sessions import RefusedError, SessionSettings, open_session
from planish.sandbox import run_tool

_KIB = 1024
_CALLS = 2
_TIMEOUT_S = 60.0


def peak_memory(
    model: Path, settings: SessionSettings, disabled: Collection[str], feed: Feed, *, as_it_is: bool = False
) -> float:
    """Return the most memory (MiB) that loading and running a model takes beyond the process's own.

    Args:
        model: the file.
        settings: of the session.
        disabled: the runtime's passes that are left out.
        feed: what it is run on.
        as_it_is: whether the runtime optimises nothing.

    Raises:
        RefusedError: it does not run.
    """
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "feed.npz"
        np.savez(arrays, *feed.values())  # not by name: an input may be called as a parameter of `savez` is
        asked = {
            "model": str(model),
            "inputs": [(name, array.dtype.name) for name, array in feed.items()],
            "settings": asdict(settings),
            "disabled": sorted(disabled),
            "feed": str(arrays),
            "as_it_is": as_it_is,
        }
        command = [sys.executable, "-P", "-m", "planish.levels.graph.peak_memory", json.dumps(asked)]
        try:
            ran = run_tool(command, seconds=_TIMEOUT_S)
        except TimeoutError as error:
            raise RefusedError(f"it did not run within {_TIMEOUT_S:g} s") from error
    if ran.code:
        raise RefusedError((ran.message.splitlines() or [f"exit code {ran.code}"])[-1])
    return float(ran.output)


def _main(asked: dict[str, object]) -> float:
    import numpy as np

    loaded = np.load(str(asked["feed"]))
    inputs: list[tuple[str, str]] = asked["inputs"]  # type: ignore[assignment]
    settings = SessionSettings(**asked["settings"])  # type: ignore[arg-type]
    # The runtime's own memory is not the model's, nor what knows numbers that NumPy does not.
    import_module("openvino" if settings.elsewhere else "onnxruntime")
    arrays = [loaded[f"arr_{place}"] for place in range(len(inputs))]
    if any(array.dtype.kind == "V" for array in arrays):
        import_module("onnx")
    feed = {name: array.view(dtype) for array, (name, dtype) in zip(arrays, inputs, strict=True)}
    before = _most_kib()
    disabled: list[str] = asked["disabled"]  # type: ignore[assignment]
    session = open_session(Path(str(asked["model"])), settings, disabled, as_it_is=bool(asked["as_it_is"]))
    for _ in range(_CALLS):
        session.run(feed)
    return (_most_kib() - before) / _KIB


def _most_kib() -> int:
    """Read the largest resident set so far, in KiB.

    Not from `getrusage`, which on Linux begins with what the parent had.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    sys.stdout.write(str(_main(json.loads(sys.argv[1]))))
