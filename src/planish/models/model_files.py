"""Files of cost models, and the folders that hold them."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planish.core import FeatureSchema, PlanishError
from planish.core.files import DAMAGED, replacing, why
from planish.models.cost_model import Dataset
from planish.models.provenance import (
    OBJECTIVE,
    HeldOut,
    Stated,
    Value,
    own_name,
    read_held_out,
    read_stated,
    unmet,
)
from planish.models.trees import BoostedTrees

if TYPE_CHECKING:
    from planish.models.tree_gru import TreeGru

OBJECTIVES = ("rank", "regression")
FORMAT = 1
HINT = "Fit one: planish models fit --level LEVEL."


@dataclass(frozen=True)
class SavedModel:
    """Cost model with its level, features and training.

    Args:
        level: whose candidates it predicts.
        schema: of the features that it is asked with.
        objective: what it learnt: "rank" or "regression".
        metrics: name to value, on programs that it did not learn from.
        rows: how many trials it learnt from.
        programs: of how many programs they are.
        training: hash of these rows.
        version: planish's, that fitted it.
        predicts: what predicts.
        conditions: of these trials: their objective, and what the level's spaces have as `conditions`.
        held_out: its comparison with the shipped one on held-back programs; None where there was none.
    """

    level: str
    schema: FeatureSchema
    objective: str
    metrics: Mapping[str, float]
    rows: int
    programs: int
    training: str
    version: str
    predicts: BoostedTrees | TreeGru
    conditions: Stated = field(default_factory=dict[str, Sequence[Value]])
    held_out: HeldOut | None = None

    @property
    def kind(self) -> str:
        """Return the kind of model: "trees" or "tree-gru"."""
        return "trees" if isinstance(self.predicts, BoostedTrees) else "tree-gru"

    @property
    def measured(self) -> str:
        """Return the name of the objective that its trials were led by; "" where it is not known."""
        return str(next(iter(self.conditions.get(OBJECTIVE, ())), ""))

    def fits(self, schema: FeatureSchema) -> bool:
        """Return whether it can predict from these features."""
        return self.schema == schema


def _model_of(path: Path, about: Mapping[str, Any], predicts: BoostedTrees | TreeGru) -> SavedModel:
    """Make a model of what its file says of it, which may be wrong."""

    def check(what: str, *, right: bool) -> None:
        if not right:
            raise PlanishError(f"{path} is not a model file: {what}", HINT)

    level, metrics, rows, programs = (about[name] for name in ("level", "metrics", "rows", "programs"))
    for name in ("level", "training", "version"):
        check(f"its {name} is {about[name]!r}, not text", right=isinstance(about[name], str))
    check(f"its objective is {about['objective']!r}", right=about["objective"] in OBJECTIVES)
    schema = _schema(about["schema"])
    check("its features lack a name, a version or columns, each once", right=schema is not None)
    assert schema is not None
    owner, slash, _ = schema.name.partition("/")
    of_level = f"it is of the level {level!r}, and its features {schema.name} are of the level {owner!r}"
    check(of_level, right=not slash or owner == level)
    check(f"its number of trials is {rows!r}", right=_is_count(rows))
    check(f"its number of programs is {programs!r}, of {rows} trials", right=_is_count(programs, rows))
    numbers = isinstance(metrics, dict) and all(
        type(value) in (int, float) and math.isfinite(value) for value in metrics.values()
    )
    check("its metrics are not a dictionary of numbers", right=numbers)
    metrics = {name: float(value) for name, value in metrics.items()}
    training, version = about["training"], about["version"]
    conditions = read_stated(about.get("conditions", {}))
    check("its conditions are not a dictionary of lists", right=conditions is not None)
    assert conditions is not None
    made = level, schema, about["objective"], metrics, rows, programs, training, version, predicts
    return SavedModel(*made, conditions, read_held_out(about.get("held_out")))


def _schema(raw: Mapping[str, Any]) -> FeatureSchema | None:
    """Read the features' names; None where they are none."""
    if not isinstance(raw, dict):
        return None
    name, version = raw.get("name"), raw.get("version")
    names: Sequence[Any] | None = raw.get("names")
    if not isinstance(name, str) or not isinstance(version, int) or not isinstance(names, list):
        return None
    if not all(isinstance(each, str) for each in names) or len(set(names)) < len(names):
        return None
    return FeatureSchema(name, version, tuple(names))


def _is_count(value: Any, most: int | None = None) -> bool:
    """Return whether it is a whole number, 1 at least."""
    return type(value) is int and value >= 1 and (most is None or value <= most)


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
    predicts: BoostedTrees | TreeGru,
    conditions: Stated | None = None,
) -> SavedModel:
    """Attach to a predictor the facts of its training."""
    programs = 1 if data.groups is None else len(np.unique(data.groups))
    made = len(data.targets), programs, hash_of(data), version("planish"), predicts
    return SavedModel(level, schema, objective, metrics, *made, conditions or {})


OF_TREES = ".npz"
OF_NETWORKS = ".safetensors"
SUFFIXES = (OF_TREES, OF_NETWORKS)

Arrays = Mapping[str, NDArray[Any]]


def suffix_of(kind: str) -> str:
    """Return how the file of a kind of models ends: "trees" or "tree-gru"."""
    return OF_TREES if kind == "trees" else OF_NETWORKS


def write_model(model: SavedModel, path: Path) -> None:
    """Write a model: its arrays, and of it `about`, JSON: as bytes beside them, or as metadata.

    Raises:
        OSError: it cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in model.predicts.arrays().items()}
    if model.kind == "trees":
        # Leaves take half the memory so, and candidates that differ by less are as good as each other.
        arrays["leaves"] = arrays["leaves"].astype(np.float16)
    about = {"format": FORMAT, **{name: value for name, value in vars(model).items() if name != "predicts"}}
    about["schema"], about["sums"] = asdict(model.schema), _sums(arrays)
    about["held_out"] = None if model.held_out is None else asdict(model.held_out)
    with replacing(path) as part, part.open("wb") as file:
        if model.kind == "trees":
            written = np.frombuffer(json.dumps(about).encode(), np.uint8)
            np.savez_compressed(file, allow_pickle=False, about=written, **arrays)
        else:
            from safetensors.numpy import save

            file.write(save(arrays, {"planish": json.dumps(about)}))


def load_model(path: Path) -> SavedModel:
    """Read a model that `write_model` wrote.

    Raises:
        PlanishError: there is none, it is cut off or was changed, it is of another format, or what it says
            cannot be true.
    """
    from safetensors import SafetensorError

    try:
        if path.suffix == OF_NETWORKS:
            from safetensors import safe_open

            from planish.models.tree_gru import TreeGru

            with safe_open(path, "numpy") as network:
                about = json.loads((network.metadata() or {})["planish"])
                arrays = {name: network.get_tensor(name) for name in network.keys()}  # noqa: SIM118
            return _read(path, about, arrays, TreeGru.of)
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        return _read(path, json.loads(arrays.pop("about").tobytes()), arrays, BoostedTrees.of)
    except (*DAMAGED, AttributeError, IndexError, SafetensorError) as error:
        raise PlanishError(f"cannot read a model from {path}: {why(error)}", HINT) from error


def _read(
    path: Path, about: dict[str, Any], arrays: Arrays, of: Callable[[Arrays], BoostedTrees | TreeGru]
) -> SavedModel:
    if (found := about.pop("format")) != FORMAT:
        raise PlanishError(f"{path} has format {found}, and this planish reads {FORMAT}", HINT)
    sums: Mapping[str, str] = about.pop("sums")
    # A damaged model would still predict, and it would not be seen why the search is bad.
    changed = [name for name, found in _sums(arrays).items() if found != sums.get(name)]
    if changed or len(arrays) != len(sums):
        raise PlanishError(
            f"{path} was changed since it was written: {', '.join(changed) or 'it lacks arrays'}", HINT
        )
    wrong = [name for name, array in arrays.items() if not _sound(name, array)]
    if wrong:
        raise PlanishError(f"{path} has values that are not finite numbers in {', '.join(wrong)}", HINT)
    model = _model_of(path, about, of(arrays))
    # Before it is asked: arrays that do not fit would fail, or read other columns, in the middle of a search.
    with suppress(IndexError, ValueError):  # arrays of other dimensions have no such shapes
        if model.predicts.fits(model.schema.width):
            return model
    raise PlanishError(f"{path} holds no model of its {model.schema.width} features", HINT)


def _sound(name: str, array: NDArray[Any]) -> bool:
    """Return whether an array holds numbers."""
    if name in ("features", "loops", "whole"):
        return array.dtype.kind in "iu"
    if array.dtype.kind != "f":
        return False
    # Thresholds of nodes that ask nothing are infinite.
    return bool((~np.isnan(array) if name == "thresholds" else np.isfinite(array)).all())


def _sums(arrays: Arrays) -> dict[str, str]:
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in arrays.items()}


_log = logging.getLogger("planish")


def models_folder() -> Path:
    """Return where the user's own models are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "models"


def model_paths() -> Mapping[str, Path]:
    """Return the models that there are, by name; one of the user's never takes a shipped one's name."""
    shipped = _shipped()
    # Reversed, so that of one name with both suffixes the first suffix wins; renamed ones give way.
    own = [*reversed(_own())]
    own.sort(key=lambda path: path.stem not in shipped)
    return shipped | {own_name(path.stem, shipped): path for path in own}


def models_for(
    schema: FeatureSchema, conditions: Mapping[str, Value] | None = None
) -> Mapping[str, SavedModel]:
    """Find the models that searches ask together for features, by what they are called in notes.

    They are the user's own, and the one that comes with planish. Of those that learnt from the same trials
    the first counts, trees before networks. One for another version of these features is none, for what it
    learnt is not what they mean now. Nor is one that learnt under other conditions, or that made the
    predictions for held-back programs no better. A warning reports each of the user's that cannot be used.

    Args:
        schema: of the features.
        conditions: of the search: its objective, and those of its space; None for any.
    """
    usable = dict[str, SavedModel]()
    called = {f"your {path.name}": path for path in _own()}
    for name, path in (called | {f"planish's {name}": path for name, path in _shipped().items()}).items():
        try:
            model = load_model(path)
        except PlanishError as error:
            _log.warning("%s; it is left out", error)
            continue
        if unused(model, conditions or {}):
            continue
        if model.fits(schema):
            known = model.training in [other.training for other in usable.values()]
            usable |= {} if known else {name: model}
        elif model.schema.name == schema.name:
            _log.warning("%s; it is left out", _other_features(path, model, schema))
    return usable


def unused(model: SavedModel, conditions: Mapping[str, Value]) -> str:
    """Return why searches under some conditions do not ask a model for their features; "" where they do."""
    if model.held_out and model.held_out.is_worse:
        return "it does not improve predictions"
    return f"it {why}" if (why := unmet(model.conditions, conditions)) else ""


def _own() -> list[Path]:
    return [path for suffix in SUFFIXES for path in sorted(models_folder().glob(f"*{suffix}"))]


def _shipped() -> dict[str, Path]:
    shipped = Path(str(files("planish.models")))
    return {path.stem.removeprefix("model-"): path for path in sorted(shipped.glob("model-*.npz"))}


def shipped_model(schema: FeatureSchema, conditions: Mapping[str, Value]) -> tuple[str, SavedModel] | None:
    """Return the model that planish ships for features and conditions, by its name in notes; None: none."""
    models = ((f"planish's {name}", load_model(path)) for name, path in _shipped().items())
    fitting = (pair for pair in models if pair[1].fits(schema) and not unmet(pair[1].conditions, conditions))
    return next(fitting, None)


def in_words(name: str) -> str:
    """Say which model a name of `models_for` is, or a path."""
    kinds = {"planish's ": "planish's built-in cost model for ", "your ": "your cost model "}
    for own, words in kinds.items():
        if name.startswith(own):
            return words + name.removeprefix(own)
    return f"the cost model {name}"


def _other_features(path: Path, model: SavedModel, schema: FeatureSchema) -> str:
    """Return how a model's features differ from those that it is asked with."""
    theirs, ours = (f"{each.name} {each.version}" for each in (model.schema, schema))
    these = f"these are {ours}" if theirs != ours else "these have other columns"
    return f"the model {path} is for the features {theirs}, and {these}"


def model_named(name: str, schema: FeatureSchema, objective: str = "") -> SavedModel:
    """Read the model that the user named: one that `model_paths` has, or a file.

    Its objective must be the search's. Other conditions may differ, for the user decides that they may.

    Raises:
        PlanishError: it cannot be read, is asked with other features, or is for another objective.
    """
    model = required(model_paths().get(name, Path(name)), schema)
    if objective and (why := unmet(model.conditions, {OBJECTIVE: objective})):
        raise PlanishError(f"the model {name} has {why}", "Fit one for these: planish models fit.")
    return model


def required(path: Path, schema: FeatureSchema) -> SavedModel:
    """Read the model that the user named.

    Raises:
        PlanishError: it cannot be read, or is asked with other features.
    """
    model = load_model(path)
    if not model.fits(schema):
        raise PlanishError(_other_features(path, model, schema), "Fit one for these: planish models fit.")
    return model
