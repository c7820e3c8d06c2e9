"""`planish policy`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.own_files import copy, place_of, remove_own
from planish.cli.readable import readable
from planish.cli.unread import refuse_before

if TYPE_CHECKING:
    from planish.models.policy_files import SavedPolicy

policy = typer.Typer(
    help="List, train, evaluate, export and remove policies, which choose steps without measuring."
)

Name = Annotated[str, typer.Argument(metavar="POLICY", help="A policy's name, as listed, or a file.")]


@policy.callback(invoke_without_command=True)
def front(context: typer.Context, form: given.Format = "text") -> None:
    """List, train, evaluate, export and remove policies; without a command, list them."""
    if context.invoked_subcommand is None:
        _list(form)
    else:
        refuse_before(context)


@policy.command()
def export(
    policy: Name, file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")]
) -> None:
    """Copy a policy to a file, to be used elsewhere: --set policy=FILE."""
    from planish.models.policy_files import load_policy

    path = path_of(policy)
    load_policy(path)
    copy(path, file)


@policy.command()
def remove(policy: Annotated[str, typer.Argument(metavar="POLICY", help="One of your own.")]) -> None:
    """Remove a policy of your own; one that comes with planish takes its place again."""
    from planish.models.policy_files import policies_folder

    remove_own(f"the policy {policy}", path_of(policy), policies_folder(), "planish policy lists them.")


def _list(form: str) -> None:
    from planish.cli.output import document, table
    from planish.models.policy_files import load_policy, places

    found = readable(places(), load_policy)
    if form == "json":
        document({"policies": [{"name": name, **told(*pair)} for name, pair in found.items()]})
        return
    heads = ["policy", "level", "observes", "network", "programs", "vectors", "regret", "file"]
    rows = [
        [name, p.level, p.schema.name, p.shape.kind, f"{p.programs:,}", _vectors(p), _regret(p), str(path)]
        for name, (path, p) in found.items()
    ]
    table(heads, rows, right=heads[4:7])


def _vectors(policy: SavedPolicy) -> str:
    return f"{8 * policy.vector_bytes} bits" if policy.vector_bytes else ""


def _regret(policy: SavedPolicy) -> str:
    value = policy.metrics.get("regret")
    return "" if value is None else f"{value:.4f}"


def told(path: Path, policy: SavedPolicy) -> dict[str, object]:
    """Give what --format json says of a policy."""
    return {
        "level": policy.level,
        "observes": f"{policy.schema.name} {policy.schema.version}",
        "network": vars(policy.shape),
        "actions": list(policy.actions),
        "steps": policy.steps,
        "programs": policy.programs,
        "vector_bytes": policy.vector_bytes,
        "metrics": dict(policy.metrics),
        "version": policy.version,
        "file": str(path),
    }


def path_of(policy: str) -> Path:
    """Find a policy's file.

    Raises:
        PlanishError: there is none of that name.
    """
    from planish.models.policy_files import SUFFIX, places

    return place_of("policy", policy, places(), [SUFFIX])
