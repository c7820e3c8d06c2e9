"""`planish inspect`: the class of a model, the passes that matter, and the list to begin with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planish.cli import options as given
from planish.cli.output import document, say

if TYPE_CHECKING:
    from planish.core import Candidate, Level, Task
    from planish.levels.graph.architecture import Recognition
    from planish.levels.graph.program import GraphProgram
    from planish.levels.graph.relevance import Relevance
    from planish.levels.graph.starting_lists import ClassList, StepEffect

_COUNTS = 12
_EFFECTS = 8


def inspect(
    program: Annotated[str, typer.Argument(metavar="FILE", help="ONNX model.")],
    shape: Annotated[
        given.Names,
        typer.Option(
            "--shape",
            metavar="x=1,3,224,224",
            help="Shape of an input that the model leaves open; may be repeated.",
        ),
    ] = None,
    option: given.LevelOption = None,
    objective: given.Objective = "",
    cores: given.Cores = 1,
    relevance: Annotated[
        bool, typer.Option(help="Find the passes that change the model, which takes seconds the first time.")
    ] = True,
    store: given.StorePlace = None,
    form: given.Format = "text",
) -> None:
    """Show the class of a network, which passes change it, and the list that a search starts with.

    Nothing is measured. The list is what trials of other models of the class have shown, if the store has
    any for this machine and objective; otherwise it has the passes of the class in the paper.

        planish inspect examples/graph/cnn-small-torchscript.onnx
    """
    from planish.cli.request import level_options, names
    from planish.core.registry import load_program
    from planish.tuning.api import task_of
    from planish.tuning.settings import Settings

    options = level_options(given.ProgramOptions(shape=shape, option=option))
    level, model = load_program(program, "graph", options)
    task = task_of(level, model, Settings("graph", names(objective), cores=cores))
    found = inspected(level, task, store, relevance=relevance)
    if form == "json":
        document(found.to_json())
        return
    for title, lines in found.sections().items():
        say("\n".join([title, *(f"  {line}" for line in lines), ""]))


@dataclass(frozen=True)
class Inspection:
    """Findings about a model.

    Args:
        recognition: the class and why.
        relevance: which passes change the model; None where it was not asked for.
        learnt: what trials of other models of the class have shown; None where there are none.
        start: the list to begin with: what was learnt, else the class's of the paper's table 4.
        source: of that list, in words.
    """

    recognition: Recognition
    relevance: Relevance | None
    learnt: ClassList | None
    start: Candidate
    source: str

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return titles and lines, for people."""
        seen = self.recognition.features
        counts = {k: v for k, v in seen.to_json().items() if v and k != "operations"}
        operations = ", ".join(f"{count} {op}" for op, count in list(seen.operations.items())[:_COUNTS])
        found: dict[str, Sequence[str]] = {
            f"class: {self.recognition}": [
                f"{match.title} ({match.strength:.2f}): {'; '.join(match.reasons)}"
                for match in self.recognition.matches
            ],
            "features": [operations, ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in counts.items())],
        }
        if self.relevance is not None:
            found["relevance"] = _relevance_lines(self.relevance)
        if self.learnt is not None:
            found["learnt"] = [_effect_line(e) for e in list(self.learnt.effects.values())[:_EFFECTS]]
        return {**found, f"starting list ({self.source})": _list_lines(self.start)}

    def to_json(self) -> dict[str, Any]:
        """Return all as JSON."""
        from planish.cli.summary import candidate_document

        learnt = self.learnt
        effects = [] if learnt is None else [_effect_document(e) for e in learnt.effects.values()]
        return {
            "classes": [match.to_json() for match in self.recognition.matches],
            "features": self.recognition.features.to_json(),
            "relevance": None if self.relevance is None else self.relevance.to_json(),
            "learnt": learnt and {"class": learnt.name, "models": learnt.models, "trials": learnt.trials,
                                  "expected": learnt.expected, "effects": effects},
            "start": {"source": self.source, **candidate_document(self.start)},
        }  # fmt: skip


def inspected(level: Level, task: Task[GraphProgram], store: str | None, *, relevance: bool) -> Inspection:
    """Inspect a model, without measuring anything.

    Args:
        level: the level `graph`.
        task: the model, the target and the objectives.
        store: where trials of other models are; None for the user's own, which need not be there.
        relevance: whether to find out which passes change the model.
    """
    from planish.levels.graph.architecture import CLASSES
    from planish.levels.graph.starting_lists import recognition_of, starting_list

    recognition = recognition_of(task.program)
    found = _relevance(task) if relevance else None
    if learnt := _learnt(level, task, recognition.classes, store):
        models = f"{learnt.models} other model{'s' * (learnt.models > 1)}"
        what = f"learned from {learnt.trials:,} trials on {models} of class {learnt.name}"
        source = f"{what}; expected cost over the baseline's: {learnt.expected:.2f}"
        return Inspection(recognition, found, learnt, learnt.best, source)
    symbols = [CLASSES[name].paper for name in recognition.classes if name in CLASSES]
    source = f"table 4 of the paper: {', '.join(dict.fromkeys(symbols)) or 'nothing for this class'}"
    return Inspection(recognition, found, None, starting_list(recognition), source)


def _relevance(task: Task[GraphProgram]) -> Relevance:
    from planish.levels.graph.pass_probe import PassProbe
    from planish.levels.graph.relevance import THOROUGH_S, analyze, remembered
    from planish.levels.graph.space import widest_settings

    program, settings = task.program, widest_settings(task)
    with closing(PassProbe(program, settings)) as probe:
        return remembered(program, settings, lambda: analyze(probe, THOROUGH_S), complete=True)


def _learnt(
    level: Level, task: Task[GraphProgram], classes: Sequence[str], store: str | None
) -> ClassList | None:
    """Learn from what the store has of other models."""
    from planish.levels.graph.starting_lists import known_list
    from planish.store import open_store
    from planish.store.opening import locate
    from planish.tuning.transfer import tried_elsewhere

    location = locate(store)
    if store is None and isinstance(location, Path) and not location.exists():
        return None
    with open_store(store, read_only=True) as opened:
        tried = tried_elsewhere(opened, level, task)
    return known_list(tried, classes)


def _relevance_lines(found: Relevance) -> list[str]:
    lines = [
        f"{found.kept} of {found.known} passes change it: {', '.join((*found.rewrites, *found.runtime))}"
    ]
    lines += [f"{name} fails: {reason}" for name, reason in found.failing.items()]
    lines += [f"not determined: {problem}" for problem in found.problems]
    if found.missing:
        lines.append(f"the installed ONNX Runtime does not have: {', '.join(found.missing)}")
    return lines


def _effect_line(effect: StepEffect) -> str:
    what = "fails" if effect.fails else f"{effect.ratio - 1:+.1%}"
    return f"{effect.step}: {what} ({effect.trials:,} trials, {effect.models} models)"


def _effect_document(effect: StepEffect) -> dict[str, Any]:
    return {
        "step": effect.step.to_json(),
        "ratio": effect.ratio,
        "models": effect.models,
        "trials": effect.trials,
        "fails": effect.fails,
    }


def _list_lines(candidate: Candidate) -> list[str]:
    from planish.levels.graph.passes import passes_of_kind, selection_of

    chosen = selection_of(candidate)
    lines = [f"run first: {', '.join(chosen.rewrites) or 'nothing'}"]
    kept = [each.name for each in passes_of_kind("rule", "transformer") if each.name not in chosen.disabled]
    if chosen.disabled and len(kept) < len(chosen.disabled):
        lines.append(f"only these of ONNX Runtime's passes: {', '.join(kept) or 'none'}")
    elif chosen.disabled:
        lines.append(f"disabled in ONNX Runtime: {', '.join(sorted(chosen.disabled))}")
    return [*lines, "optimized offline"] if chosen.offline else lines
