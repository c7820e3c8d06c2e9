"""`planish learn`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from planish.cli import options as given

if TYPE_CHECKING:
    from planish.train.background import Fitted

_LOWEST = 19
"""The lowest priority, which workers inherit."""


def learn(
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROGRAM]...",
            help="Programs to record. Default: random ones of `loops`, a sample of functions of `llvm`.",
        ),
    ] = None,
    level: Annotated[
        Literal["loops", "llvm", "hlo"],
        typer.Option("--level", help="Level whose searches are to begin with what is learned."),
    ] = "loops",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", metavar="S", help="Seconds after which nothing more is recorded. Default: no end."
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
    """Improve the model or table with which searches on this machine begin, at the lowest priority.

    Programs are tuned and recorded. After every few of them, and at the end, the model or table is fitted
    again: for `loops` a cost model, for `llvm` the first lists, for `hlo` the gains of each kind of edit.
    Searches use it only if it is better on held-out programs. The same command continues where it was
    stopped. The level `loops` needs the extra `learn`.

        planish learn --seconds 3600
        planish learn --level llvm src/*.ll
    """
    from planish.cli.output import document, remark, say
    from planish.core import StoppedError, stoppable
    from planish.core.registry import level_named
    from planish.core.wording import one_line
    from planish.store import open_store
    from planish.train.background import default_store, improve, plan_of, programs_of
    from planish.tuning.batch import record_programs
    from planish.tuning.transfer import known_tasks

    plan, chosen = plan_of(level), programs_of(level, programs or [])
    os.nice(_LOWEST)
    found_level, recorded, fitted, stopped = level_named(level), 0, None, False
    location = default_store()
    location.parent.mkdir(parents=True, exist_ok=True)
    with open_store(store or str(location)) as opened:
        try:
            with stoppable():
                found = record_programs(found_level, chosen, plan.settings, plan.trials, opened, seconds)
                for one, new in improve(found, partial(known_tasks, opened, found_level), plan):
                    recorded, fitted = recorded + (one is not None), new or fitted
                    if form == "text" and one is not None:
                        title = getattr(one.program, "title", "") or one.program.text
                        say(f"{one.programs}: {one_line(title, 80)}, {one.trials} trials")
                    if form == "text" and new is not None:
                        say(judged(new))
        except (StoppedError, KeyboardInterrupt):
            stopped = True
        count = len(known_tasks(opened, found_level))
    if form == "json":
        held_out = None if fitted is None or fitted.held_out is None else vars(fitted.held_out)
        document({"recorded": recorded, "held_out": held_out, "stopped": stopped})
    elif stopped:
        remark("Stopped. Run the same command again to continue.")
    elif fitted is None:
        known = "1 program is recorded" if count == 1 else f"{count} programs are recorded"
        what = f"{known}, and nothing is fitted to fewer than {plan.first}."
        remark(f"{what} Run the same command again, or name more programs.")


def judged(fitted: Fitted) -> str:
    """Say how good what was fitted is, and whether searches use it."""
    used = "searches use it" if fitted.is_used else "searches do not use it"
    found = f"; {fitted.held_out.text}" if fitted.held_out else ""
    return f"{fitted.what} fitted to {fitted.programs} programs{found}: {used}"
