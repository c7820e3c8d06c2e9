"""Where cost models lie, and which of them is for which features."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from planish.core import FeatureSchema, PlanishError
from planish.learn.cost.model_files import SUFFIXES, load_model
from planish.learn.cost.saved import SavedModel


def models_folder() -> Path:
    """Give where the user's own models are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "models"


def places() -> Mapping[str, Path]:
    """Give the models that there are, by name: the user's own, in place of shipped ones of that name."""
    shipped = Path(str(files("planish.learn.cost")))
    found = {path.stem.removeprefix("model-"): path for path in sorted(shipped.glob("model-*.npz"))}
    own = [path for suffix in SUFFIXES for path in sorted(models_folder().glob(f"*{suffix}"))]
    # Reversed, so that of one name with both suffixes the first suffix wins.
    return found | {path.stem: path for path in reversed(own)}


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
        what = f"{model.schema.name} {model.schema.version}"
        raise PlanishError(
            f"the model {path} is for the features {what}, and these are {schema.name} {schema.version}",
            "Fit one for these: planish models fit.",
        )
    return model
