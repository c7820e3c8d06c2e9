"""`planish policy evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planish.cli import options as given
from planish.cli.model_passes import require_passes
from planish.cli.policies import Name, path_of
from planish.cli.unread import refuse_unread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planish.models.policy_files import SavedPolicy
    from planish.train.corpus.lessons import TextLesson

ANSWERED = 200
"""Functions that a language model is asked about at most: an answer takes it a tenth of a second and more."""


def evaluate(
    command: typer.Context,
    policy: Name,
    store: given.StorePlace = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", metavar="CORPUS", help="llvm: whose functions are read.")
    ] = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option("--labels", metavar="FILE", help="llvm: what planish corpus costs wrote; repeatable."),
    ] = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="llvm: packages of the corpus that are read.")
    ] = "validation",
    form: given.Format = "text",
) -> None:
    """Tell what a policy's choices are worth, by what is known; programs it learnt from count too.

    On the level llvm that is what its most probable lists save over -Oz, on functions of a corpus. Of a
    language model, greedy lists are compiled, of up to 200 functions.
    On others it is how far the step that it prefers is behind the best one that the store knows.
    """
    from planish.cli.output import document, facts
    from planish.models.policy_files import load_policy

    held = load_policy(path_of(policy))
    lists = held.shape.kind in ("reader", "writer", "decoder")
    what = f"the evaluation of a policy of level '{held.level}'"
    read = {"corpus", "labels", "split"} if lists else {"store"}
    refuse_unread(command, what, {"policy", "form", *read})
    programs, metrics = _by_labels(held, corpus, labels or [], split) if lists else _by_store(held, store)
    if form == "json":
        document({"policy": policy, "programs": programs, "metrics": dict(metrics)})
        return
    facts({"programs": f"{programs:,}", **{name: f"{value:.2%}" for name, value in metrics.items()}})


def _by_store(policy: SavedPolicy, store: str | None) -> tuple[int, Mapping[str, float]]:
    from planish.core import PlanishError
    from planish.levels import level_named
    from planish.models.transfer import known_tasks
    from planish.store import open_store
    from planish.train.continuations import judge_steps, read_lessons

    level, hint = level_named(policy.level), "Search in its space first: --searcher beam-bfs."
    problem: PlanishError | None = None
    with open_store(store, read_only=True) as opened:
        tasks = known_tasks(opened, level)
        for space in level.spaces:
            try:
                lessons = read_lessons(opened, level, tasks, space)
            except PlanishError as error:
                problem = error  # the last: the first spaces may be of no numbered actions at all
                continue
            if not (why := policy.unfit(lessons.space)):
                return len(lessons.programs), judge_steps(policy, lessons)
            problem = PlanishError(f"the policy {policy.name} {why}", hint)
    assert problem is not None
    raise problem


def _by_labels(
    policy: SavedPolicy, corpus: Path | None, labels: Sequence[Path], split: str
) -> tuple[int, Mapping[str, float]]:
    from planish.core import PlanishError
    from planish.train.continuations import judge_lists, writable
    from planish.train.corpus.lessons import read_list_lessons, read_text_lessons
    from planish.train.cost_tables import read_joined

    if corpus is None or not labels:
        raise PlanishError(
            "a policy over pass lists is judged by a corpus and labels",
            "Give --corpus and --labels: planish corpus build, planish corpus costs.",
        )
    objective = policy.schema.name.rpartition("/")[2]
    if policy.shape.kind == "reader":  # it chooses among these alone
        chosen = [tuple(text.split(",")) for text in policy.actions]
        table = read_joined(labels, objective, chosen)
    else:
        table = read_joined(labels, objective)
        if policy.shape.kind == "decoder":
            require_passes(policy)
            return _by_answers(
                policy, read_text_lessons(corpus, [table], objective, table.columns.lists, split)
            )
        chosen = writable(policy, table.columns.lists)
    lessons = read_list_lessons(corpus, [table], objective, chosen, split)
    return len(lessons), judge_lists(policy, lessons)


def _by_answers(policy: SavedPolicy, lessons: Sequence[TextLesson]) -> tuple[int, Mapping[str, float]]:
    from planish.models.decoder import ROOM, DecoderShape, cut
    from planish.models.ir_text import Tokenizer
    from planish.train.corpus.answers import answers_of, judge_answers, summary

    shape, tokenizer = policy.shape, Tokenizer.read(policy.vocabulary)
    assert isinstance(shape, DecoderShape)
    some = lessons[:: max(1, len(lessons) // ANSWERED)][:ANSWERED]
    if long := cut(shape, tokenizer, (one.ir for one in some)):
        what = f"{long:,} of {len(some):,} functions are longer than what the model reads"
        typer.echo(f"{what}, their first {shape.context - ROOM:,} tokens", err=True)
    answers = answers_of(shape, policy.parameters, tokenizer, some, code=False)
    found = summary(judge_answers(some, answers))
    shares = {
        name: value for name, value in found.items() if not name.startswith(("functions", "instructions"))
    }
    return len(some), shares
