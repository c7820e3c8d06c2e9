"""Gates in files: the arrays of their trees as .npz."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from planish.core import PlanishError
from planish.core.damaged_files import DAMAGED, why
from planish.core.replacing import replacing
from planish.learn.cost.gate import Gate, describe_functions
from planish.learn.cost.trees import BoostedTrees

FORMAT = 2


def write_gate(gate: Gate, path: Path) -> None:
    """Write a gate whose model are trees: an .npz of their arrays, and of `about`, JSON as bytes.

    Raises:
        OSError: it cannot be written.
    """
    assert isinstance(gate.model, BoostedTrees)
    about = {"format": FORMAT, **{name: value for name, value in vars(gate).items() if name != "model"}}
    written = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, about=written, **gate.model.arrays())


def load_gate(path: Path) -> Gate:
    """Read a gate that `write_gate` wrote.

    Raises:
        PlanishError: there is none, it is damaged, or of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            about = json.loads(held["about"].tobytes())
            if about["format"] != FORMAT:
                what = f"{path} has format {about['format']}, and this planish reads {FORMAT}"
                raise PlanishError(what, "Train it anew: planish corpus gate TABLE -o FILE.")
            return _gate(about, BoostedTrees.of(held))
    except DAMAGED as error:
        hint = "Train one: planish corpus gate TABLE -o FILE."
        raise PlanishError(f"cannot read a gate from {path}: {why(error)}", hint) from error


def _gate(about: Mapping[str, Any], model: BoostedTrees) -> Gate:
    lists, names = tuple(tuple(passes) for passes in about["lists"]), tuple(about["names"])
    none = np.zeros((0, 1), np.int32)
    asked = describe_functions(names, np.zeros((0, 2, len(names)), np.int32), none, none)
    # Trees that do not fit would fail, or read other columns, where the gate is asked.
    if not model.fits(asked.shape[1], len(lists)):
        raise ValueError("its trees do not fit its features and lists")
    return Gate(about["objective"], about["llvm"], lists, names, model, int(about["version"]))


def shipped_gate(objective: str) -> Gate:
    """Read the gate that comes with planish for an objective.

    Raises:
        PlanishError: there is none.
    """
    with as_file(files("planish.learn.cost") / f"gate-{objective}.npz") as path:
        return load_gate(path)
