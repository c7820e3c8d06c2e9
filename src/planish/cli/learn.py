"""`planish learn`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.models.model_files import SavedModel

_LOWEST = 19
"""The lowest priority, which workers inherit."""


def learn(
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", help="Seconds after which it ends. Default: it ends by Ctrl-C."
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="LOCATION",
            help="Store of the recorded programs. Default: one in your data folder.",
        ),
    ] = None,
    form: given.Format = "text",
) -> None:
    """Improve the cost model of loops for this machine, at the lowest priority.

    Random programs are tuned and recorded. After 30 of them, and then after every 10, a model is fitted.
    Searches use it together with the one that comes with planish, unless that does not improve the
    predictions for programs that were held back. The same command goes on where it was stopped. It needs the
    extra `learn`.

        planish learn --seconds 3600
    """
    from planish.cli.output import document, remark, say
    from planish.core import PlanishError, StoppedError, stoppable
    from planish.core.installation import install_command
    from planish.core.wording import one_line
    from planish.levels.loops.level import LoopsLevel
    from planish.models.trees import can_grow
    from planish.store import open_store
    from planish.train.cost_models import SEED, SETTINGS, TRIALS, default_store, improve_model
    from planish.train.random_programs import random_programs
    from planish.tuning.batch import record_programs
    from planish.tuning.transfer import known_tasks

    if not can_grow():
        raise PlanishError("models are trained by XGBoost, which is not installed", install_command("learn"))
    os.nice(_LOWEST)
    level, recorded, fitted, stopped = LoopsLevel(), 0, None, False
    location = default_store()
    location.parent.mkdir(parents=True, exist_ok=True)
    with open_store(store or str(location)) as opened:
        try:
            with stoppable():
                found = record_programs(level, random_programs(SEED), SETTINGS, TRIALS, opened, seconds)
                for one, model in improve_model(found, partial(known_tasks, opened, level)):
                    recorded, fitted = recorded + 1, model or fitted
                    if form == "text":
                        say(f"{one.programs}: {one_line(one.program.text, 80)}, {one.trials} trials")
                        if model is not None:
                            say(judged(model))
        except (StoppedError, KeyboardInterrupt):
            stopped = True
    if form == "json":
        held_out = None if fitted is None or fitted.held_out is None else vars(fitted.held_out)
        document({"recorded": recorded, "held_out": held_out, "stopped": stopped})
    elif stopped:
        remark("Stopped. The same command goes on.")


def judged(model: SavedModel) -> str:
    """Say how good a new model is, and whether searches use it."""
    if model.held_out is None:
        return f"fitted to {model.programs} programs; searches use it"
    used = "searches do not use it" if model.held_out.is_worse else "searches use both together"
    return f"fitted to {model.programs} programs; {model.held_out.text}: {used}"
