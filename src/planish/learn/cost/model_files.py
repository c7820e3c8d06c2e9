"""Cost models in files: trees as .npz, networks as safetensors; no pickles, and a checksum for each array."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import PlanishError
from planish.core.damaged_files import DAMAGED, why
from planish.core.replacing import replacing
from planish.learn.cost.model_facts import facts_of
from planish.learn.cost.saved import SavedModel
from planish.learn.cost.tree_gru import TreeGru
from planish.learn.cost.trees import BoostedTrees

FORMAT = 1
HINT = "Fit one: planish models fit --level LEVEL."
OF_TREES = ".npz"
OF_NETWORKS = ".safetensors"
SUFFIXES = (OF_TREES, OF_NETWORKS)

Arrays = Mapping[str, NDArray[Any]]


def suffix_of(kind: str) -> str:
    """Give how the file of a kind of models ends: "trees" or "tree-gru"."""
    return OF_TREES if kind == "trees" else OF_NETWORKS


def write_model(model: SavedModel, path: Path) -> None:
    """Write a model: its arrays, and of it `about`, JSON: as bytes beside them, or as metadata.

    Raises:
        OSError: it cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in model.predicts.arrays().items()}
    if isinstance(model.predicts, BoostedTrees):
        # Leaves take half the room so, and candidates that differ by less are as good as each other.
        arrays["leaves"] = arrays["leaves"].astype(np.float16)
    about = {"format": FORMAT, **{name: value for name, value in vars(model).items() if name != "predicts"}}
    about["schema"], about["sums"] = asdict(model.schema), _sums(arrays)
    if isinstance(model.predicts, TreeGru):
        from safetensors.numpy import save

        with replacing(path) as part:
            part.write_bytes(save(arrays, {"planish": json.dumps(about)}))
    else:
        with replacing(path) as part, part.open("wb") as file:
            written = np.frombuffer(json.dumps(about).encode(), np.uint8)
            np.savez_compressed(file, allow_pickle=False, about=written, **arrays)


def load_model(path: Path) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises:
        PlanishError: there is none, it is cut off or was changed, it is of another format, or what it says
            cannot be true.
    """
    from safetensors import SafetensorError

    try:
        if path.suffix == OF_NETWORKS:
            return _read(path, *_network(path), TreeGru.of)
        return _read(path, *_trees(path), BoostedTrees.of)
    except (*DAMAGED, AttributeError, IndexError, SafetensorError) as error:
        raise PlanishError(f"cannot read a model from {path}: {why(error)}", HINT) from error


def _trees(path: Path) -> tuple[dict[str, Any], Arrays]:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    return json.loads(arrays.pop("about").tobytes()), arrays


def _network(path: Path) -> tuple[dict[str, Any], Arrays]:
    from safetensors import safe_open

    with safe_open(path, "numpy") as held:
        about = json.loads((held.metadata() or {})["planish"])
        return about, {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118


def _read(
    path: Path, about: dict[str, Any], arrays: Arrays, of: Callable[[Arrays], BoostedTrees | TreeGru]
) -> SavedModel:
    if (found := about.pop("format")) != FORMAT:
        raise PlanishError(f"{path} has format {found}, and this planish reads {FORMAT}", HINT)
    sums: Mapping[str, str] = about.pop("sums")
    # A damaged model would still predict, and nobody would see why the search is bad.
    changed = [name for name, found in _sums(arrays).items() if found != sums.get(name)]
    if changed or len(arrays) != len(sums):
        raise PlanishError(
            f"{path} was changed since it was written: {', '.join(changed) or 'it lacks arrays'}", HINT
        )
    facts = facts_of(path, about, HINT)
    wrong = [name for name, array in arrays.items() if not _sound(name, array)]
    if wrong:
        raise PlanishError(f"{path} has what is no number or not finite in {', '.join(wrong)}", HINT)
    predicts = of(arrays)
    # Before it is asked: arrays that do not fit would fail, or read other columns, in the middle of a search.
    if not _fits(predicts, facts.schema.width):
        raise PlanishError(f"{path} holds no model of its {facts.schema.width} features", HINT)
    return SavedModel(**vars(facts), predicts=predicts)


def _fits(predicts: BoostedTrees | TreeGru, width: int) -> bool:
    try:
        return predicts.fits(width)
    except (IndexError, ValueError):  # arrays of other dimensions have no such shapes
        return False


def _sound(name: str, array: NDArray[Any]) -> bool:
    """Whether an array holds numbers."""
    if name in ("features", "loops", "whole"):
        return array.dtype.kind in "iu"
    if array.dtype.kind != "f":
        return False
    # Thresholds of nodes that ask nothing are infinite.
    return bool((~np.isnan(array) if name == "thresholds" else np.isfinite(array)).all())


def _sums(arrays: Arrays) -> dict[str, str]:
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
