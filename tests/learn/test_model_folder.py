"""Which models a search asks by itself, and which are left out."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from planish.levels.loops.features import SCHEMA
from planish.models.model_files import (
    SavedModel,
    load_model,
    model_named,
    model_paths,
    models_for,
    write_model,
)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a model of the user's that has the shipped one's name."""
    monkeypatch.setattr("planish.models.model_files.models_folder", lambda: tmp_path)
    return tmp_path / "loops.npz"


def shipped() -> SavedModel:
    return load_model(model_paths()["loops"])


def trainings() -> dict[str, str]:
    return {name: model.training for name, model in models_for(SCHEMA).items()}


def test_the_users_model_and_the_shipped_one_are_asked_together(own: Path) -> None:
    known = shipped()
    assert trainings() == {"planish's loops": known.training}
    write_model(replace(known, programs=1, training="mine"), own)
    assert trainings() == {"your loops.npz": "mine", "planish's loops": known.training}
    assert model_named("loops", SCHEMA).training == "mine", "who is named is asked alone"


def test_of_models_that_learnt_from_the_same_trials_one_is_asked(own: Path) -> None:
    write_model(shipped(), own)
    assert [*trainings()] == ["your loops.npz"]


@pytest.mark.parametrize("damaged", [False, True])
def test_what_cannot_be_used_is_reported_and_the_shipped_one_is_asked(
    own: Path, caplog: pytest.LogCaptureFixture, *, damaged: bool
) -> None:
    known = shipped()
    write_model(replace(known, programs=9999, schema=replace(SCHEMA, version=99)), own)
    if damaged:
        own.write_bytes(own.read_bytes()[:5000])
    with caplog.at_level(logging.WARNING, "planish"):
        assert trainings() == {"planish's loops": known.training}
    said = (
        f"cannot read a model from {own}"
        if damaged
        else f"the model {own} is for the features loops/schedule 99"
    )
    assert said in caplog.text
    assert caplog.text.rstrip().endswith("it is left out")
