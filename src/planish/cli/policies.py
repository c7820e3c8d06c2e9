"""`planish policy`: policies, listed, trained, evaluated, exported and removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.language_training import Device, device_of
from planish.cli.options import refuse_before, refuse_unread
from planish.cli.own_files import copy, file_of, readable, remove_own
from planish.cli.policy_training import policy_document, train

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planish.models.policy_files import SavedPolicy
    from planish.train.corpus.answers import TextExample

policy = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="POLICY", help="Name of a policy, as listed, or a file.")]


@policy.callback(invoke_without_command=True)
def front(context: typer.Context, form: given.Format = "text") -> None:
    """List, train, evaluate, export and remove policies; without a command, list them.

    Policies choose the steps of a candidate without measuring; the searchers policy, priority and samples
    use them.
    """
    if context.invoked_subcommand is None:
        _list(form)
    else:
        refuse_before(context)


@policy.command()
def export(
    policy: Name, file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")]
) -> None:
    """Copy a policy to a file.

    Another machine uses the copy with --set policy=FILE.

        planish policy export own-loops mine.safetensors
    """
    from planish.models.policy_files import load_policy

    path = path_of(policy)
    load_policy(path)
    copy(path, file)


@policy.command()
def remove(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="Name of a policy of your own.")],
) -> None:
    """Remove a policy of your own.

    Searches then use the one that comes with planish, if there is one.

        planish policy remove own-loops
    """
    from planish.models.policy_files import policies_folder

    remove_own(f"the policy {policy}", path_of(policy), policies_folder(), "planish policy lists them.")


def _list(form: str) -> None:
    from planish.cli.output import document, table
    from planish.models.policy_files import load_policy, policy_paths

    found = readable(policy_paths(), load_policy)
    if form == "json":
        document({"policies": [{"name": name, **policy_document(*pair)} for name, pair in found.items()]})
        return
    heads = ["policy", "level", "observes", "network", "programs", "vectors", "regret", "file"]
    rows = [
        [
            name,
            p.level,
            p.schema.name,
            p.shape.kind,
            f"{p.programs:,}",
            f"{8 * p.vector_bytes} bits" if p.vector_bytes else "",
            f"{p.metrics['regret']:.4f}" if "regret" in p.metrics else "",
            str(path),
        ]
        for name, (path, p) in found.items()
    ]
    table(heads, rows, right=heads[4:7])


def path_of(policy: str) -> Path:
    """Find a policy's file; raises PlanishError where there is none of that name."""
    from planish.models.policy_files import SUFFIX, policy_paths

    return file_of("policy", policy, policy_paths(), [SUFFIX])


ANSWERED = 1000
"""Functions that a language model is asked about at most, as in the thesis's validation set (4.3.3)."""


@policy.command()
def evaluate(
    command: typer.Context,
    policy: Name,
    store: given.StorePlace = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", metavar="CORPUS", help="llvm: corpus of the functions.")
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels", metavar="FILE", help="llvm: table by 'planish corpus costs'; may be repeated."
        ),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="llvm: split of the corpus.")
    ] = "validation",
    device: Device = "auto",
    form: given.Format = "text",
) -> None:
    """Evaluate a policy on known results, including programs that it learned from.

    For the level llvm: what its 1, 3, 5, 10 and 30 most probable lists save over -Oz; the greedy lists of a
    language model are compiled, for up to 1,000 functions. For other levels: `regret`, how much worse the
    preferred step is than the best one in the store, as a share of the best speed, and `best`, the share of
    states in which no step is better.

        planish policy evaluate loops --store mine.db
    """
    from planish.cli.output import document, facts
    from planish.models.policy_files import load_policy

    held = load_policy(path_of(policy))
    lists = held.shape.kind in ("reader", "writer", "decoder")
    what = f"the evaluation of a policy of level '{held.level}'"
    read = {"corpus", "labels", "split"} if lists else {"store"}
    if held.shape.kind == "decoder":
        read.add("device")
    refuse_unread(command, what, {"policy", "form", *read})
    programs, metrics = (
        _by_labels(held, corpus, labels or [], split, device) if lists else _by_store(held, store)
    )
    if form == "json":
        document({"policy": policy, "programs": programs, "metrics": dict(metrics)})
        return
    facts({"programs": f"{programs:,}", **{name: f"{value:.2%}" for name, value in metrics.items()}})


def _by_store(policy: SavedPolicy, store: str | None) -> tuple[int, Mapping[str, float]]:
    from planish.core import PlanishError
    from planish.core.registry import level_named
    from planish.store import open_store
    from planish.train.continuations import evaluate_steps, read_state_dataset
    from planish.tuning.transfer import known_tasks

    level, hint = level_named(policy.level), "Search in its space first: --searcher beam-bfs."
    problem: PlanishError | None = None
    with open_store(store, read_only=True) as opened:
        tasks = known_tasks(opened, level)
        for space in level.spaces:
            try:
                dataset = read_state_dataset(tasks, level.name, space)
            except PlanishError as error:
                problem = error  # the last: the first spaces may be of no numbered actions at all
                continue
            if not (why := policy.unfit(dataset.space)):
                return len(dataset.programs), evaluate_steps(policy, dataset)
            problem = PlanishError(f"the policy {policy.name} {why}", hint)
    assert problem is not None
    raise problem


def _by_labels(
    policy: SavedPolicy, corpus: Path | None, labels: Sequence[Path], split: str, device: str
) -> tuple[int, Mapping[str, float]]:
    from planish.core import PlanishError
    from planish.train.continuations import evaluate_lists, writable
    from planish.train.corpus.answers import read_list_dataset, read_text_examples
    from planish.train.cost_tables import read_joined

    if corpus is None or not labels:
        raise PlanishError(
            "a policy over pass lists is evaluated by a corpus and labels",
            "Give --corpus and --labels: planish corpus build, planish corpus costs.",
        )
    objective = policy.schema.name.rpartition("/")[2]
    if policy.shape.kind == "reader":  # it chooses among these alone
        chosen = [tuple(text.split(",")) for text in policy.actions]
        table = read_joined(labels, objective, chosen)
    else:
        table = read_joined(labels, objective)
        if policy.shape.kind == "decoder":
            from planish.train.texts import require_passes

            require_passes(policy)
            examples = read_text_examples(corpus, [table], objective, table.columns.lists, split)
            return _by_answers(policy, examples, device_of(device))
        chosen = writable(policy, table.columns.lists)
    dataset = read_list_dataset(corpus, [table], objective, chosen, split)
    return len(dataset), evaluate_lists(policy, dataset)


def _by_answers(
    policy: SavedPolicy, examples: Sequence[TextExample], device: str
) -> tuple[int, Mapping[str, float]]:
    from planish.models.decoder import ROOM, DecoderShape, cut
    from planish.models.ir_text import Tokenizer
    from planish.train.corpus.answers import answers_of, evaluate_answers, summary

    shape, tokenizer = policy.shape, Tokenizer.read(policy.vocabulary)
    assert isinstance(shape, DecoderShape)
    some = examples[:: max(1, len(examples) // ANSWERED)][:ANSWERED]
    if long := cut(shape, tokenizer, (one.ir for one in some)):
        what = f"{long:,} of {len(some):,} functions are longer than what the model reads"
        typer.echo(f"{what}, their first {shape.context - ROOM:,} tokens", err=True)
    answers = answers_of(shape, policy.parameters, tokenizer, some, code=False, device=device)
    found = summary(evaluate_answers(some, answers))
    shares = {
        name: value for name, value in found.items() if not name.startswith(("functions", "instructions"))
    }
    return len(some), shares


policy.command()(train)
