"""What a selection does to a model: its class, each pass's effect, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planish.core import Candidate, Task
from planish.graph.evaluator_spec import widest_settings
from planish.graph.first_lists import recognition_of
from planish.graph.nodes_by_type import Nodes
from planish.graph.pass_effects import ROUNDS, Figures, beside, defaults_of, name_of, parts
from planish.graph.passes import IN_BFLOAT16, Selection, selection_of
from planish.graph.program import GraphProgram
from planish.graph.relevance import Relevance, known_relevance
from planish.graph.running import SessionSettings
from planish.graph.text_tables import aligned, milliseconds, times

UNMEASURED = "not measured when the run ended: there was no time"


def described(
    task: Task[GraphProgram], candidate: Candidate, figures: Mapping[str, Any]
) -> Mapping[str, str]:
    """Show what a selection does.

    Args:
        task: the model.
        candidate: the selection.
        figures: what `planish.graph.pass_effects.figures_of` measured; empty where nobody did.

    Returns:
        `class`: what the model is, and why; `passes`: the effect of each, alone and left out; `nodes`: by
        type, before and after; `compared`: latency, compile time and size beside other selections;
        `relevance`: how far the passes were pruned. With several objectives the first two are one, since
        of each selection of a front the first alone is shown at the end of a run.
    """
    program, chosen = task.program, selection_of(candidate)
    known = known_relevance(program, widest_settings(task))
    steps = parts(chosen, known.runtime if known else chosen.disabled)
    nodes = Nodes.read(figures.get("nodes", {}))
    compared: Figures = figures.get("compared", {})
    found: Figures = {**compared, **figures.get("parts", {})}
    first = {"class": _class(program), "passes": _passes(program, chosen, steps, found, nodes)}
    return {
        **(first if len(task.objectives) == 1 else {"class and passes": "\n\n".join(first.values())}),
        "nodes": nodes.table() if "nodes" in figures else UNMEASURED,
        "compared": _compared(program, beside(program, chosen), compared),
        "relevance": told_relevance(known),
    }


def introduced(task: Task[GraphProgram]) -> Sequence[str]:
    """List what is known of a model before it is measured: its classes and why, and how many passes matter.

    What matters is not found out here: without a line of it, nobody has.
    """
    program = task.program
    known = known_relevance(program, widest_settings(task))
    relevant = [f"relevant passes: {known.kept} of {known.known}"] if known else []
    problems = [f"relevance: {problem}" for problem in known.problems] if known else []
    wrong = [f"wrong by default: {', '.join(program.without)} of ONNX Runtime"] if program.without else []
    return [*(f"class: {line}" for line in _class(program).splitlines()), *wrong, *relevant, *problems]


def _class(program: GraphProgram) -> str:
    found = recognition_of(program)
    lines = [f"{match.title}: {'; '.join(match.reasons)}" for match in found.matches]
    return "\n".join(lines)


def _runtime(chosen: Selection, program: GraphProgram) -> str:
    return SessionSettings.of(1, {**program.settings, **chosen.session}).runtime


def _passes(
    program: GraphProgram,
    chosen: Selection,
    steps: Mapping[str, tuple[Selection, Selection]],
    found: Figures,
    nodes: Nodes,
) -> str:
    if chosen == program.baseline:
        return f"none: the file stays as it is, under {defaults_of(program)}"
    base, whole = found.get(name_of(program.baseline)), found.get(name_of(chosen))
    rows = [["", "gain alone", "loss without it", "nodes"]]
    for place, (text, (alone, rest)) in enumerate(steps.items()):
        change = nodes.change(place) if place < len(chosen.rewrites) else ""
        rows.append(
            [
                text,
                times(base, found.get(name_of(alone)), "latency"),
                times(found.get(name_of(rest)), whole, "latency"),
                change,
            ]
        )
    lines = [aligned(rows, texts=(0, 3))] if steps else []
    lines += [] if whole is not None or not steps else [f"Gains and losses: {UNMEASURED}."]
    idle = len(chosen.disabled) - sum(" without " in text for text in steps)
    if idle:
        lines.append(f"{idle} more of ONNX Runtime's passes are left out; they change nothing here.")
    if _runtime(chosen, program) == "OpenVINO":
        narrow = " in bfloat16" if IN_BFLOAT16 in chosen.settings else ""
        lines.append(f"It runs by OpenVINO{narrow}, and needs it: pip install openvino.")
    if chosen.offline:
        lines.append("ONNX Runtime's work is done once, and kept as a file.")
    return "\n".join(lines)


def _compared(program: GraphProgram, others: Mapping[str, Selection], found: Figures) -> str:
    base = found.get(name_of(program.baseline))
    if base is None:
        return UNMEASURED
    rows: list[Sequence[str]] = [["", "latency", "gain", "session", "saved", "size"]]
    for name, each in others.items():
        values = found.get(name_of(each))
        if values is None:
            rows.append([name, "-", "-", "-", "-", "-"])
            continue
        saved = 1 - values["compile_time"] / base["compile_time"]
        rows.append(
            [
                name,
                milliseconds(values["latency"]),
                times(base, values, "latency"),
                milliseconds(values["compile_time"]),
                f"{100 * saved:.0f} %",
                f"{values['model_size'] / 1e6:.2f} MB",
            ]
        )
    turns = min(int(values.get("turns", ROUNDS)) for values in found.values())
    note = f"\nMedians of {turns} of {ROUNDS} turns: there was no time for more." if turns < ROUNDS else ""
    return aligned(rows, texts=(0,)) + note


def told_relevance(known: Relevance | None) -> str:
    """Tell how far the passes were pruned for a model."""
    if known is None:
        return "not looked at yet: see 'planish inspect'"
    after = ", ".join(f"{name} (after {first})" for name, first in known.after.items())
    lines = [
        f"{known.kept} of {known.known} passes change this model, or may: the others left the space.",
        f"alone: {', '.join(known.alone) or 'none'}",
        f"after others: {after or 'none'}",
        f"of ONNX Runtime: {', '.join(known.runtime) or 'none'}",
    ]
    if known.failing:
        lines.append(f"failing: {', '.join(f'{name} ({why})' for name, why in known.failing.items())}")
    lines += [f"not found out: {problem}" for problem in known.problems]
    if known.untried or known.unknown:
        lines.append(
            f"There was no time for {len(known.untried)} passes and {known.unknown} pairs of passes."
        )
    return "\n".join(lines)
