"""Cost models in files: which features they are asked with, what they learnt from, and how good they are."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from planish import __version__
from planish.core import FeatureSchema, PlanishError
from planish.learn.cost.model import Dataset
from planish.learn.cost.trees import BoostedTrees

FORMAT = 1
HINT = "Fit one: planish models fit --level LEVEL."


@dataclass(frozen=True)
class SavedModel:
    """A model that knows what it is for.

    Args:
        level: whose candidates it predicts.
        schema: of the features that it is asked with.
        objective: what it learnt: "rank" or "regression".
        metrics: name to value, on programs that it did not learn from.
        rows: how many trials it learnt from.
        programs: of how many programs they are.
        training: hash of these rows.
        version: planish's, that fitted it.
        trees: what predicts.
    """

    level: str
    schema: FeatureSchema
    objective: str
    metrics: Mapping[str, float]
    rows: int
    programs: int
    training: str
    version: str
    trees: BoostedTrees

    def fits(self, schema: FeatureSchema) -> bool:
        """Whether it may be asked with these features."""
        return self.schema == schema


def hash_of(data: Dataset) -> str:
    """Name what is learnt from by its content."""
    digest = hashlib.sha256()
    for array in (data.features, data.targets, data.groups):
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def made_model(
    level: str,
    schema: FeatureSchema,
    objective: str,
    metrics: Mapping[str, float],
    data: Dataset,
    trees: BoostedTrees,
) -> SavedModel:
    """Say of trees what they were learnt from."""
    programs = 1 if data.groups is None else len(np.unique(data.groups))
    counts = len(data.targets), programs
    return SavedModel(level, schema, objective, metrics, *counts, hash_of(data), __version__, trees)


def write_model(model: SavedModel, path: Path) -> None:
    """Write a model: an .npz of its arrays, and of `about`, JSON as bytes.

    Raises:
        OSError: it cannot be written.
    """
    about = {"format": FORMAT, **{name: value for name, value in vars(model).items() if name != "trees"}}
    about["schema"] = asdict(model.schema)
    arrays = dict(model.trees.arrays())
    # Leaves take half the room so, and candidates that differ by less are as good as each other.
    arrays["leaves"] = arrays["leaves"].astype(np.float16)
    sums = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}
    written = np.frombuffer(json.dumps({**about, "sums": sums}).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, about=written, **arrays)


def load_model(path: Path) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises:
        PlanishError: there is none, it is cut off or was changed, or it is of another format.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            return _read(path, {name: held[name] for name in held.files})
    except (OSError, ValueError, KeyError, TypeError, EOFError, IndexError, zipfile.BadZipFile) as error:
        raise PlanishError(f"cannot read a model from {path}: {error}", HINT) from error


def _read(path: Path, arrays: dict[str, Any]) -> SavedModel:
    about = json.loads(arrays.pop("about").tobytes())
    if (found := about.pop("format")) != FORMAT:
        raise PlanishError(f"{path} has format {found}, and this planish reads {FORMAT}", HINT)
    sums: Mapping[str, str] = about.pop("sums")
    changed = [
        name
        for name, array in arrays.items()
        if hashlib.sha256(array.tobytes()).hexdigest() != sums.get(name)
    ]
    if changed or len(arrays) != len(sums):
        raise PlanishError(
            f"{path} was changed since it was written: {', '.join(changed) or 'it lacks arrays'}", HINT
        )
    told = about.pop("schema")
    schema = FeatureSchema(told["name"], told["version"], tuple(told["names"]))
    trees = BoostedTrees.of(arrays)
    asked, nodes = trees.features, trees.features.shape[1]
    shapes = (asked.shape == trees.thresholds.shape, trees.leaves.shape == (len(asked), nodes + 1, 1))
    if (
        not all(shapes)
        or nodes & (nodes + 1)
        or not (0 <= asked.min(initial=0) <= asked.max(initial=0) < schema.width)
    ):
        raise PlanishError(f"{path} holds no trees for its features", HINT)
    return SavedModel(**about, schema=schema, trees=trees)


def models_folder() -> Path:
    """Give where the user's own models are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "models"


def places() -> Mapping[str, Path]:
    """Give the models that there are, by name: the user's own, in place of shipped ones of that name."""
    shipped = Path(str(files("planish.learn.cost")))
    found = {path.stem.removeprefix("model-"): path for path in sorted(shipped.glob("model-*.npz"))}
    return found | {path.stem: path for path in sorted(models_folder().glob("*.npz"))}


def model_for(schema: FeatureSchema) -> SavedModel | None:
    """Find a model for features; None where there is none.

    One for another version of these features is none: what it learnt is not what they mean now.

    Raises:
        PlanishError: a file cannot be read.
    """
    for path in places().values():
        if (model := load_model(path)).fits(schema):
            return model
    return None


def required(path: Path, schema: FeatureSchema) -> SavedModel:
    """Read the model that the user named.

    Raises:
        PlanishError: it cannot be read, or is asked with other features.
    """
    model = load_model(path)
    if not model.fits(schema):
        what = f"{model.schema.name} {model.schema.version}"
        raise PlanishError(
            f"the model {path} is for the features {what}, and these are {schema.name} {schema.version}",
            "Fit one for these: planish models fit.",
        )
    return model
