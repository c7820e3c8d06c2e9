"""`planish models`: cost models, listed, fitted, evaluated, exported and removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from planish.cli import options as given
from planish.cli.options import level_names, refuse_before
from planish.cli.output import writing
from planish.cli.own_files import copy, file_of, readable, remove_own, show_written

if TYPE_CHECKING:
    from planish.core import Level
    from planish.models.model_files import SavedModel


models = typer.Typer()

LevelName = Annotated[
    str,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Level whose candidates the model predicts.",
        autocompletion=level_names,
    ),
]
Name = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model, as listed, or a file.")]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write. Default: your own model of the level, in your data folder.",
    ),
]
Learns = Annotated[
    Literal["rank", "regression"],
    typer.Option("--loss", help="Learn which candidate is better (rank), or by how much (regression)."),
]
Leading = Annotated[
    str,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="Learn from the runs with this leading objective; required if the store has several.",
    ),
]
Kind = Annotated[
    Literal["trees", "tree-gru"],
    typer.Option("--model", help="Boosted trees, or a recurrent network over the loops."),
]


@models.callback(invoke_without_command=True)
def front(context: typer.Context, form: given.Format = "text") -> None:
    """List, fit, evaluate, export and remove cost models; without a command, list them.

    Cost models predict which candidates are worth measuring; `--searcher model-guided` uses them. A second
    table shows what the default search of each level begins with, why, and how good that was.
    """
    if context.invoked_subcommand is None:
        _list(form)
    else:
        refuse_before(context)


@models.command()
def fit(
    level: LevelName,
    store: given.StorePlace = None,
    output: ModelFile = None,
    kind: Kind = "trees",
    objective: Leading = "",
    loss: Learns = "rank",
    seed: given.Seed = 0,
    form: given.Format = "text",
) -> None:
    """Fit a cost model on the trials of a level in the store.

    Searches for the same objective, element type, cores and vector width use it together with the one that
    comes with planish, unless it does not improve the predictions for held-out programs. With
    --set model=NAME a search uses it alone. It needs the extra `learn`; `--model tree-gru` needs `train`.

        planish models fit --level loops
    """
    from planish.core import PlanishError
    from planish.core.registry import level_named
    from planish.models.model_files import models_folder, suffix_of, write_model
    from planish.models.provenance import OWN
    from planish.store import open_store
    from planish.train.cost_models import fit_model, read_trials
    from planish.tuning.transfer import known_tasks

    if output is not None and output.suffix != suffix_of(kind):
        what = f"expected a {suffix_of(kind)} file for a model of {kind}, got {output}"
        raise PlanishError(what, f"Name a file {suffix_of(kind)}.")
    with open_store(store, read_only=True) as opened:
        learnt = read_trials(known_tasks(opened, level_named(level)), level, objective)
    model = fit_model(level, learnt, loss, seed, kind)
    parts = level, model.measured, *([] if kind == "trees" else [kind])
    path = output or models_folder() / f"{OWN}{'-'.join(parts)}{suffix_of(kind)}"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_model(model, path)
    count = f"{model.rows:,} of {model.programs:,} programs"
    show_written(path, ("trials", count), model.metrics, _model_document(path, model), form)
    _tell_how_used(path, model)


@models.command()
def evaluate(model: Name, store: given.StorePlace = None, form: given.Format = "text") -> None:
    """Report how well a model ranks the trials in the store.

    Programs that it learned from are included.

        planish models evaluate loops --store other.db
    """
    from planish.cli.output import document, facts
    from planish.core import PlanishError
    from planish.core.registry import level_named
    from planish.models.model_files import load_model
    from planish.store import open_store
    from planish.train.cost_models import evaluate as judge
    from planish.train.cost_models import read_trials
    from planish.tuning.transfer import known_tasks

    held = load_model(_path(model))
    with open_store(store, read_only=True) as opened:
        learnt = read_trials(known_tasks(opened, level_named(held.level)), held.level, held.measured)
    if not held.fits(learnt.schema):
        raise PlanishError(f"the model {model} is for other features than this planish has", "Fit it anew.")
    metrics = judge(held.predicts, learnt.data)
    if form == "json":
        document({"model": model, "metrics": metrics})
        return
    facts({name: f"{value:.3g}" for name, value in metrics.items()})


@models.command()
def export(model: Name, file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")]) -> None:
    """Copy a model to a file.

    Another machine uses the copy with --set model=FILE.

        planish models export loops loops.npz
    """
    from planish.models.model_files import load_model

    path = _path(model)
    load_model(path)
    copy(path, file)


@models.command()
def remove(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model of your own.")],
) -> None:
    """Remove a model of your own.

    Searches then use the one that comes with planish, if there is one.

        planish models remove own-loops-time_s
    """
    from planish.models.model_files import models_folder

    remove_own(f"the model {model}", _path(model), models_folder(), "planish models lists them.")


def _list(form: str) -> None:
    from planish.cli.output import document, say, table
    from planish.models.model_files import load_model, model_paths

    found = readable(model_paths(), load_model)
    asked = [*_asked({name: model for name, (_, model) in found.items()})]
    if form == "json":
        listed = [{"name": name, **_model_document(*pair)} for name, pair in found.items()]
        document({"models": listed, "searches": [vars(each) for each in asked]})
        return
    rows = [
        [
            name,
            m.level,
            m.kind,
            f"{m.schema.name} {m.schema.version}",
            m.measured,
            f"{m.rows:,}",
            f"{m.programs:,}",
            f"{m.metrics['rank correlation']:.2f}" if "rank correlation" in m.metrics else "",
            str(p),
        ]
        for name, (p, m) in found.items()
    ]
    heads = ["model", "level", "kind", "features", "objective", "trials", "programs", "rank correlation"]
    table([*heads, "file"], rows, right=heads[5:8])
    say("\nWhat the default search of each level begins with:\n")
    columns = ["level", "searcher", "begins with", "used", "on held-back programs"]
    table(columns, [[one.level, one.searcher, one.source, one.used, one.quality] for one in asked])


@dataclass(frozen=True)
class Source:
    """Start of a level's default search.

    Args:
        level: its name.
        searcher: the default one.
        source: a model, a policy, or what the level knows.
        used: "yes", or why it is not used for a usual program on this machine.
        quality: how good it was on programs that it had not learnt from.
    """

    level: str
    searcher: str
    source: str
    used: str
    quality: str


def _asked(models: Mapping[str, SavedModel]) -> Iterator[Source]:
    """List what default searches begin with: models, the policy of the level `llvm`, and tables of levels."""
    from planish.core import registry
    from planish.core.registry import LEVELS, level_named
    from planish.levels.llvm.ir.features import instruction_schema
    from planish.models.policy_files import policy_for_schema

    for level in registry.each_usable(LEVELS, level_named)[0].values():
        searcher = level.searchers[0]
        for name, model in models.items():
            if model.level == level.name:
                reason = _reason(level, searcher, model)
                yield Source(level.name, searcher, f"the model {name}", reason or "yes", _quality(model))
        if level.name == "llvm" and (policy := policy_for_schema(instruction_schema())):
            saved = (f"{name}: {value:.1%}" for name, value in policy.metrics.items() if "saved" in name)
            quality = policy.held_out.text if policy.held_out else "; ".join(saved)
            yield Source(level.name, searcher, f"the policy {policy.name}, for instructions", "yes", quality)
        for what, quality in level.known_beforehand().items():
            yield Source(level.name, searcher, what, "yes", quality)


def _reason(level: Level[Any], searcher: str, model: SavedModel) -> str:
    """Return why the default search of a usual task does not ask a model; "" where it does."""
    from planish.core import CanFeaturize
    from planish.models.model_files import unused
    from planish.models.provenance import OBJECTIVE

    if (task := level.usual_task()) is None:
        return f"{searcher} asks no model; model-guided does"
    space = level.space(task, level.spaces[0])
    if not isinstance(space, CanFeaturize) or not model.fits(space.schema):
        return "it is for other features"
    return unused(model, {**space.conditions, OBJECTIVE: task.objectives[0].name})


def _quality(model: SavedModel) -> str:
    """Say how well a model orders the candidates of programs that it had not learnt from."""
    if model.held_out:
        return model.held_out.text
    held, metric = model.metrics.get("programs"), model.metrics.get("rank correlation")
    return "" if held is None or metric is None else f"rank correlation {metric:.2f} on {held:.0f} programs"


def _model_document(path: Path, model: SavedModel) -> dict[str, object]:
    fields = {
        name: value for name, value in vars(model).items() if name not in ("predicts", "schema", "objective")
    }
    return {
        **fields,
        "loss": model.objective,
        "held_out": None if model.held_out is None else vars(model.held_out),
        "kind": model.kind,
        "features": f"{model.schema.name} {model.schema.version}",
        "file": str(path),
    }


def _tell_how_used(path: Path, model: SavedModel) -> None:
    """Report where searches use a new model of the user's together with others."""
    from planish.cli.output import remark
    from planish.models.combined import shares
    from planish.models.model_files import in_words, models_folder, models_for

    if model.held_out is not None:
        remark(model.held_out.text)
        if path.parent == models_folder() and model.held_out.is_worse:
            remark(
                f"it does not improve predictions: searches do not use it; --set model={path.stem} asks it"
            )
    known = models_for(model.schema)
    parts = dict(zip(known, shares([*known.values()]), strict=True))
    mine = parts.pop(f"your {path.name}", None)
    if path.parent == models_folder() and parts and mine is not None:
        what = f"searches use it together with {' and '.join(map(in_words, parts))}; its weight is {mine:.3f}"
        remark(f"{what}; --set model={path.stem} uses it alone")


def _path(model: str) -> Path:
    from planish.models.model_files import SUFFIXES, model_paths

    return file_of("model", model, model_paths(), SUFFIXES)
