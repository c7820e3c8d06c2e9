"""What a selection does to a model: its class, each pass's effect, and what it is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from planish.core import Candidate, Task
from planish.graph.effects import ROUNDS, Found, measured, parts
from planish.graph.evaluator_spec import settings_of, unoptimised, widest_settings
from planish.graph.passes import Selection, selection_of
from planish.graph.program import GraphProgram, graph_program
from planish.graph.relevance import Examiner, ExaminerError, Relevance, known_relevance
from planish.graph.starting import class_lists, recognition_of
from planish.graph.tables import aligned, milliseconds, times

_LISTED = 6


def described(task: Task, candidate: Candidate) -> Mapping[str, str]:
    """Show what a selection does.

    Args:
        task: the model.
        candidate: the selection.

    Returns:
        `class`: what the model is, and why; `passes`: the effect of each, alone and left out; `nodes`: by
        type, before and after; `compared`: latency, compile time and size beside other selections;
        `relevance`: how far the passes were pruned. With several objectives the first two are one, since
        of each selection of a front the first alone is shown at the end of a run.
    """
    program, chosen = graph_program(task.program), selection_of(candidate)
    known = known_relevance(program, widest_settings(task))
    steps = parts(chosen, known.runtime if known else chosen.disabled)
    others = _others(program, chosen)
    compared = measured(task, [Selection(), chosen, *others.values()])
    ablation = [each for pair in steps.values() for each in pair if each not in compared]
    found = {**compared, **(measured(task, [Selection(), chosen, *ablation]) if ablation else {})}
    with closing(Examiner(program, settings_of(task))) as examiner:
        nodes = _Nodes(examiner, chosen)
        first = {"class": _class(program), "passes": _passes(chosen, steps, found, nodes)}
        return {
            **(first if len(task.objectives) == 1 else {"class and passes": "\n\n".join(first.values())}),
            "nodes": nodes.table(),
            "compared": _compared(others, compared),
            "relevance": told_relevance(known),
        }


def introduced(task: Task) -> Sequence[str]:
    """List what is known of a model before it is measured: its classes and why, and how many passes matter.

    What matters is not found out here: without a line of it, nobody has.
    """
    program = graph_program(task.program)
    known = known_relevance(program, widest_settings(task))
    relevant = [f"relevant passes: {known.kept} of {known.known}"] if known else []
    return [*(f"class: {line}" for line in _class(program).splitlines()), *relevant]


def _others(program: GraphProgram, chosen: Selection) -> Mapping[str, Selection]:
    """Name the selections of the comparison."""
    lists = class_lists(program)[:1]
    return {
        "ONNX Runtime's defaults": Selection(),
        "no optimisation": unoptimised(),
        **({"its class's list": lists[0]} if lists else {}),
        "this selection": chosen,
        "this selection, offline": replace(chosen, offline=True),
    }


def _class(program: GraphProgram) -> str:
    found = recognition_of(program)
    lines = [f"{match.title}: {'; '.join(match.reasons)}" for match in found.matches]
    return "\n".join(lines)


class _Nodes:
    """Counts of nodes on the way through a selection; a pass that fails is told by `-`."""

    def __init__(self, examiner: Examiner, chosen: Selection) -> None:
        self._chosen = chosen
        self._counts: list[Counter[str] | None] = []
        for length in range(len(chosen.rewrites) + 1):
            self._counts.append(_counted(lambda n=length: examiner.counts(chosen.rewrites[:n])))
        made = (chosen.rewrites, sorted(chosen.disabled), chosen.session.get("optimization", ""))
        self._after = _counted(lambda: examiner.optimised(*made)["counts"])
        self._usual = _counted(lambda: examiner.optimised(())["counts"])

    def change(self, place: int) -> str:
        """Tell what the pass of this place changed: `-35 Identity +2 Constant`; the most first."""
        before, after = self._counts[place], self._counts[place + 1]
        if before is None or after is None:
            return "-"
        changes = {name: after[name] - before[name] for name in before.keys() | after.keys()}
        changed = sorted((n for n in changes if changes[n]), key=lambda name: (-abs(changes[name]), name))
        told = [f"{changes[name]:+d} {name}" for name in changed[:_LISTED]]
        more = [f"and {len(changed) - _LISTED} more types"] if len(changed) > _LISTED else []
        return " ".join([*told, *more]) or "no change of counts"

    def table(self) -> str:
        """List the nodes by type: as they came, rewritten, and as the runtime runs them."""
        columns = (self._counts[0], self._counts[-1], self._after, self._usual)
        names = sorted({name for each in columns if each for name in each})
        total = ["all", *("-" if each is None else str(sum(each.values())) for each in columns)]
        rows = [
            [name, *("-" if each is None else str(each[name] or "") for each in columns)] for name in names
        ]
        head = ["", "as it came", "rewritten", "as it runs", "as it runs by default"]
        return aligned([head, total, *rows], texts=(0,))


def _counted(count: Callable[[], Mapping[str, int]]) -> Counter[str] | None:
    try:
        return Counter(count())
    except ExaminerError:  # what cannot be counted is shown as such
        return None


def _passes(
    chosen: Selection,
    steps: Mapping[str, tuple[Selection, Selection]],
    found: Found,
    nodes: _Nodes,
) -> str:
    if chosen == Selection():
        return "none: the file stays as it is, under ONNX Runtime's defaults"
    base, whole = found.get(Selection()), found.get(chosen)
    rows = [["", "gain alone", "loss without it", "nodes"]]
    for place, (text, (alone, rest)) in enumerate(steps.items()):
        change = nodes.change(place) if place < len(chosen.rewrites) else ""
        rows.append(
            [text, times(base, found.get(alone), "latency"), times(found.get(rest), whole, "latency"), change]
        )
    lines = [aligned(rows, texts=(0, 3))] if steps else []
    idle = len(chosen.disabled) - sum(" without " in text for text in steps)
    if idle:
        lines.append(f"{idle} more of ONNX Runtime's passes are left out; they change nothing here.")
    if chosen.offline:
        lines.append("ONNX Runtime's work is done once, and kept as a file.")
    return "\n".join(lines)


def _compared(others: Mapping[str, Selection], found: Found) -> str:
    base = found.get(Selection())
    if base is None:
        return "not measured: this is another machine than the one that it was tuned on"
    rows: list[Sequence[str]] = [["", "latency", "gain", "session", "saved", "size"]]
    for name, each in others.items():
        values = found.get(each)
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
    if known.untried or known.unknown:
        lines.append(
            f"There was no time for {len(known.untried)} passes and {known.unknown} pairs of passes."
        )
    return "\n".join(lines)
