"""Where cost models lie, and which of them is for which features."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from planish.core import FeatureSchema, PlanishError
from planish.learn.cost.model_files import SUFFIXES, load_model
from planish.learn.cost.saved import SavedModel

_log = logging.getLogger("planish")


def models_folder() -> Path:
    """Give where the user's own models are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "models"


def places() -> Mapping[str, Path]:
    """Give the models that there are, by name: the user's own, in place of shipped ones of that name."""
    # Reversed, so that of one name with both suffixes the first suffix wins.
    return _shipped() | {path.stem: path for path in reversed(_own())}


def models_for(schema: FeatureSchema) -> Mapping[str, SavedModel]:
    """Find the models that searches ask together for features, by what they are called in notes.

    They are the user's own, and the one that comes with planish. Of those that learnt from the same trials
    the first counts, trees before networks. One for another version of these features is none, for what it
    learnt is not what they mean now. That one of the user's cannot be used is said in a warning.
    """
    usable = dict[str, SavedModel]()
    for name, path in _called().items():
        try:
            model = load_model(path)
        except PlanishError as error:
            _log.warning("%s; it is left out", error)
            continue
        if model.fits(schema):
            known = model.training in [other.training for other in usable.values()]
            usable |= {} if known else {name: model}
        elif model.schema.name == schema.name:
            _log.warning("%s; it is left out", _other_features(path, model, schema))
    return usable


def _called() -> Mapping[str, Path]:
    own = {f"your {path.name}": path for path in _own()}
    return own | {f"planish's {name}": path for name, path in _shipped().items()}


def _own() -> list[Path]:
    return [path for suffix in SUFFIXES for path in sorted(models_folder().glob(f"*{suffix}"))]


def _shipped() -> dict[str, Path]:
    shipped = Path(str(files("planish.learn.cost")))
    return {path.stem.removeprefix("model-"): path for path in sorted(shipped.glob("model-*.npz"))}


def _other_features(path: Path, model: SavedModel, schema: FeatureSchema) -> str:
    """Say how a model's features differ from those that it is asked with."""
    theirs, ours = (f"{each.name} {each.version}" for each in (model.schema, schema))
    these = f"these are {ours}" if theirs != ours else "these have other columns"
    return f"the model {path} is for the features {theirs}, and {these}"


def model_named(name: str, schema: FeatureSchema) -> SavedModel:
    """Read the model that the user named: one that `places` has, or a file.

    Raises:
        PlanishError: it cannot be read, or is asked with other features.
    """
    return required(places().get(name, Path(name)), schema)


def required(path: Path, schema: FeatureSchema) -> SavedModel:
    """Read the model that the user named.

    Raises:
        PlanishError: it cannot be read, or is asked with other features.
    """
    model = load_model(path)
    if not model.fits(schema):
        raise PlanishError(_other_features(path, model, schema), "Fit one for these: planish models fit.")
    return model
