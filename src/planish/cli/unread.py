"""Options that were given and that nothing would read are refused: a typo in them would be told, too."""

from __future__ import annotations

from collections.abc import Container

import typer


def refuse_unread(
    command: typer.Context, what: str, read: Container[str], hint: str = "Leave it out."
) -> None:
    """Refuse options of the command line that are not read.

    Args:
        command: that was called.
        what: is done, such as "a comparison of runs"; begins the message.
        read: names of the parameters that count for that.
        hint: mends it.

    Raises:
        PlanishError: others were given.
    """
    names = {parameter.name for parameter in command.command.params if parameter.name}
    refuse(command, what, {name for name in names if name not in read}, hint)


def refuse(command: typer.Context, what: str, unread: Container[str], hint: str = "Leave it out.") -> None:
    """Refuse some options of the command line, which are not read.

    Args:
        command: that was called.
        what: is done; begins the message.
        unread: names of the parameters that do not count for that.
        hint: mends it.

    Raises:
        PlanishError: one of them was given.
    """
    from planish.core import PlanishError

    found = [
        max(parameter.opts, key=len)
        for parameter in command.command.params
        if parameter.name and parameter.name in unread and _is_given(command, parameter.name)
    ]
    if found:
        raise PlanishError(f"{what} does not read {', '.join(found)}", hint)


def refuse_before(group: typer.Context) -> None:
    """Refuse options that stand before a group's command, which has options of its own.

    Raises:
        PlanishError: there are some: `planish runs --store a.db delete ID` would delete from another store.
    """
    name = group.invoked_subcommand
    refuse_unread(group, f"'{name}'", (), f"Write it after '{name}'.")


def _is_given(command: typer.Context, name: str) -> bool:
    source = command.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
