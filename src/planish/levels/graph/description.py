"""Description of a selection, and its export for use without planish."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planish.core import Candidate, Executor, Measured, Task, evaluate
from planish.core.hashing import versioned
from planish.levels.graph.installed import OPENVINO, versions
from planish.levels.graph.pass_probe import PassProbe, PassProbeError
from planish.levels.graph.passes import IN_BFLOAT16, Disable, Offline, Selection, selection_of
from planish.levels.graph.program import GraphProgram
from planish.levels.graph.relevance import Relevance, known_relevance
from planish.levels.graph.sessions import PROVIDERS, SessionSettings, configuration, level_name, weights_of
from planish.levels.graph.space import settings_of, widest_settings
from planish.levels.graph.starting_lists import class_lists, recognition_of
from planish.levels.graph.task_setup import evaluator_spec_of, unoptimized
from planish.measure import deadline, seconds_left


def aligned(rows: Sequence[Sequence[str]], texts: Collection[int]) -> str:
    """Write rows of one length, the first of which is the head, as columns; `texts` are those to the left."""
    columns = [
        [cell.ljust(width) if index in texts else cell.rjust(width) for cell in column]
        for index, column in enumerate(zip(*rows, strict=True))
        for width in [max(map(len, column))]
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))


def times(before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> str:
    """Write how many times less a latency is than it was: `1.24x`; `-` where one is not known."""
    if before is None or after is None or not after["latency"]:
        return "-"
    return f"{before['latency'] / after['latency']:.2f}x"


_LISTED = 6


Counts = Mapping[str, int] | None
"""Nodes by the type of their operator; None after a pass that fails."""


def node_counts(probe: PassProbe, chosen: Selection) -> Mapping[str, Any]:
    """Count the nodes of a selection.

    Returns:
        `counts` after each pass of the list, and first of the model as it came; `after` and `usual`, as the
        runtime runs it, and as it does by default.
    """

    def counted(count: Callable[[], Mapping[str, int]]) -> Counts:
        try:
            return dict(count())
        except PassProbeError:  # what cannot be counted is shown as such
            return None

    lists = [chosen.rewrites[:length] for length in range(len(chosen.rewrites) + 1)]
    level = chosen.session.get("optimization", "")
    return {
        "counts": [counted(partial(probe.counts, each)) for each in lists],
        "after": counted(lambda: probe.optimized(chosen.rewrites, sorted(chosen.disabled), level).counts),
        "usual": counted(lambda: probe.optimized(()).counts),
    }


def change(counts: Sequence[Counts], index: int) -> str:
    """Return the changes by the pass at this index: `-35 Identity +2 Constant`; the most first."""
    before, after = [*counts[index : index + 2], None, None][:2]
    if before is None or after is None:
        return "-"
    changes = Counter(after)
    changes.subtract(before)
    changed = sorted((n for n in changes if changes[n]), key=lambda name: (-abs(changes[name]), name))
    listed = [f"{changes[name]:+d} {name}" for name in changed[:_LISTED]]
    more = [f"and {len(changed) - _LISTED} more types"] if len(changed) > _LISTED else []
    return " ".join([*listed, *more]) or "no change of counts"


def node_table(nodes: Mapping[str, Any]) -> str:
    """List the nodes by type: as they came, rewritten, and as the runtime runs them."""
    columns: list[Counts] = [nodes["counts"][0], nodes["counts"][-1], nodes["after"], nodes["usual"]]
    names = sorted({name for each in columns if each for name in each})
    total = ["all", *("-" if each is None else str(sum(each.values())) for each in columns)]
    rows = [[n, *("-" if each is None else str(each.get(n) or "") for each in columns)] for n in names]
    head = ["", "as it came", "rewritten", "as it runs", "as it runs by default"]
    return aligned([head, total, *rows], texts=(0,))


BUDGET_S = 10.0
"""Seconds after which what is not yet measured stays unmeasured."""
ROUNDS = 3

Figures = Mapping[str, Mapping[str, float]]
"""Costs of selections, by hash and by objective; what failed is missing."""


def parts(chosen: Selection, matter: Collection[str]) -> Mapping[str, tuple[Selection, Selection]]:
    """List the steps of a selection: its text to the step alone, and to the selection without it.

    Of passes that are left out, those in `matter` count: without another one nothing changes.
    """
    found: dict[str, tuple[Selection, Selection]] = {}
    steps = chosen.candidate.steps
    for index, step in enumerate(steps):
        if not isinstance(step, Disable | Offline) or (isinstance(step, Disable) and step.name in matter):
            rest = Candidate(steps[:index] + steps[index + 1 :])
            found[f"{index + 1}. {step}"] = (selection_of(Candidate((step,))), selection_of(rest))
    return found


def compared_selections(program: GraphProgram, chosen: Selection) -> Mapping[str, Selection]:
    """Name what a selection is compared with, and itself."""
    if program.settings.get("provider") == OPENVINO:
        return {defaults_of(program): Selection(), "this selection": chosen}
    lists = [each.leaving_out(program.without) for each in class_lists(program)[:1]]
    return {
        defaults_of(program): program.baseline,
        "no optimization": unoptimized(),
        **({"its class's list": lists[0]} if lists else {}),
        "this selection": chosen,
        **({} if chosen.elsewhere else {"this selection, offline": replace(chosen, offline=True)}),
    }


def defaults_of(program: GraphProgram) -> str:
    """Name what a program's baseline runs under."""
    if program.settings.get("provider") == OPENVINO:
        return "OpenVINO's defaults"
    return " without ".join(["ONNX Runtime's defaults", *filter(None, [", ".join(program.without)])])


def analyze(task: Task[GraphProgram], candidate: Candidate, executor: Executor) -> Mapping[str, Any]:
    """Measure what a description of a selection shows; see `planish.core.Level.analyzer`.

    Returns:
        `compared` and `parts`: by the hash of a selection, medians of `latency`, `compile_time` and
        `model_size`, and of how many `rounds` they are; `nodes`: see `planish.levels.graph.description`.
    """
    program, chosen = task.program, selection_of(candidate)
    known = known_relevance(program, widest_settings(task))
    steps = parts(chosen, known.runtime if known else chosen.disabled)
    executor.serve(replace(evaluator_spec_of(task, final=True), objectives=frozenset({"latency"})))
    compared = list(dict.fromkeys([program.baseline, *compared_selections(program, chosen).values()]))
    alone = [each for pair in steps.values() for each in pair if each not in compared]
    analysis: dict[str, Any] = {"compared": measured(executor, compared)}
    analysis["parts"] = measured(executor, [program.baseline, chosen, *alone]) if alone else {}
    with closing(PassProbe(program, settings_of(task).of_onnxruntime)) as probe:
        analysis["nodes"] = node_counts(probe, chosen)
    return analysis


def measured(executor: Executor, selections: Sequence[Selection], budget_s: float = BUDGET_S) -> Figures:
    """Measure selections, the most important first, in interleaved rounds while there is time."""
    end = time.monotonic() + seconds_left(budget_s)
    samples: dict[Candidate, list[Mapping[str, float]]] = {each.candidate: [] for each in selections}
    # Interleaved and not one after the other, so that drift of the machine affects all alike. What has no
    # sample after a round failed: it would fail in the next one, too.
    for _ in range(ROUNDS):
        for result in evaluate(executor, list(samples), deadline()):
            if isinstance(result.outcome, Measured):
                samples[result.candidate].append(result.outcome.values)
            if time.monotonic() > end:
                break
        samples = {each: several for each, several in samples.items() if several}
        if time.monotonic() > end:
            break
    names = ("latency", "compile_time", "model_size")
    return {
        each.hash: {
            **{name: statistics.median(values[name] for values in several) for name in names},
            "rounds": len(several),
        }
        for each, several in samples.items()
    }


UNMEASURED = "not measured when the run ended: there was no time"


def described(
    task: Task[GraphProgram], candidate: Candidate, analysis: Mapping[str, Any]
) -> Mapping[str, str]:
    """Show what a selection does.

    Args:
        analysis: what `planish.levels.graph.description.analyze` measured; empty where nothing was.

    Returns:
        `class`: what the model is, and why; `passes`: the effect of each, alone and left out; `nodes`: by
        type, before and after; `compared`: latency, compile time and size beside other selections;
        `relevance`: how far the passes were pruned. With several objectives the first two are one, since
        of each selection of a front the first alone is shown at the end of a run.
    """
    program, chosen = task.program, selection_of(candidate)
    known = known_relevance(program, widest_settings(task))
    steps = parts(chosen, known.runtime if known else chosen.disabled)
    nodes: Mapping[str, Any] = analysis.get("nodes", {})
    compared: Figures = analysis.get("compared", {})
    found: Figures = {**compared, **analysis.get("parts", {})}
    passes = _passes(program, chosen, steps, found, nodes.get("counts", ()))
    first = {"class": "\n".join(_class(program)), "passes": passes}
    return {
        **(first if len(task.objectives) == 1 else {"class and passes": "\n\n".join(first.values())}),
        "nodes": node_table(nodes) if nodes else UNMEASURED,
        "compared": _compared(program, compared_selections(program, chosen), compared),
        "relevance": relevance_text(known),
    }


def introduced(task: Task[GraphProgram]) -> Sequence[str]:
    """List what is known of a model before it is measured: its classes and why, and how many passes matter.

    Relevance is not analyzed here: there is no line of it where it is not known.
    """
    program = task.program
    known = known_relevance(program, widest_settings(task))
    relevant = [f"relevant passes: {known.kept} of {known.known}"] if known else []
    problems = [f"relevance: {problem}" for problem in known.problems] if known else []
    wrong = [f"wrong by default: {', '.join(program.without)} of ONNX Runtime"] if program.without else []
    return [*(f"class: {line}" for line in _class(program)), *wrong, *relevant, *problems]


def _class(program: GraphProgram) -> Sequence[str]:
    return [f"{match.title}: {'; '.join(match.reasons)}" for match in recognition_of(program).matches]


def _passes(
    program: GraphProgram,
    chosen: Selection,
    steps: Mapping[str, tuple[Selection, Selection]],
    found: Figures,
    counts: Sequence[Counts],
) -> str:
    if chosen == program.baseline:
        return f"none: the file stays as it is, under {defaults_of(program)}"
    base, whole = found.get(program.baseline.candidate.hash), found.get(chosen.candidate.hash)
    rows = [["", "gain alone", "loss without it", "nodes"]]
    for index, (text, (alone, rest)) in enumerate(steps.items()):
        gain = times(base, found.get(alone.candidate.hash))
        loss = times(found.get(rest.candidate.hash), whole)
        rows.append([text, gain, loss, change(counts, index) if index < len(chosen.rewrites) else ""])
    lines = [aligned(rows, texts=(0, 3))] if steps else []
    lines += [] if whole is not None or not steps else [f"Gains and losses: {UNMEASURED}."]
    idle = len(chosen.disabled) - sum(" without " in text for text in steps)
    if idle:
        lines.append(f"{idle} more of ONNX Runtime's passes are not listed; they change nothing here.")
    if SessionSettings.of(1, {**program.settings, **chosen.session}).elsewhere:
        narrow = " in bfloat16" if IN_BFLOAT16 in chosen.settings else ""
        lines.append(f"It runs by OpenVINO{narrow}, and needs it: pip install openvino.")
    if chosen.offline:
        lines.append("ONNX Runtime's work is done once, and kept as a file.")
    return "\n".join(lines)


def _compared(program: GraphProgram, others: Mapping[str, Selection], found: Figures) -> str:
    base = found.get(program.baseline.candidate.hash)
    if base is None:
        return UNMEASURED
    rows: list[Sequence[str]] = [["", "latency", "gain", "session", "saved", "size"]]
    for name, each in others.items():
        values = found.get(each.candidate.hash)
        if values is None:
            rows.append([name, "-", "-", "-", "-", "-"])
            continue
        latency, session = (f"{1e3 * values[each]:#.4g} ms" for each in ("latency", "compile_time"))
        saved = f"{100 * (1 - values['compile_time'] / base['compile_time']):.0f} %"
        size = f"{values['model_size'] / 1e6:.2f} MB"
        rows.append([name, latency, times(base, values), session, saved, size])
    rounds = min(int(values.get("rounds", ROUNDS)) for values in found.values())
    note = f"\nMedians of {rounds} of {ROUNDS} rounds: there was no time for more." if rounds < ROUNDS else ""
    return aligned(rows, texts=(0,)) + note


def relevance_text(known: Relevance | None) -> str:
    """Return how far the passes were pruned for a model."""
    if known is None:
        return "not analyzed yet: see 'planish inspect'"
    after = ", ".join(f"{name} (after {first})" for name, first in known.after.items())
    lines = [
        f"{known.kept} of {known.known} passes change this model, or may: the others left the space.",
        f"alone: {', '.join(known.alone) or 'none'}",
        f"after others: {after or 'none'}",
        f"of ONNX Runtime: {', '.join(known.runtime) or 'none'}",
    ]
    if known.failing:
        lines.append(f"failing: {', '.join(f'{name} ({why})' for name, why in known.failing.items())}")
    lines += [f"not determined: {problem}" for problem in known.problems]
    if known.untried or known.unknown:
        lines.append(
            f"There was no time for {len(known.untried)} passes and {known.unknown} pairs of passes."
        )
    return "\n".join(lines)


_SCRIPT = '''"""Runs a model that planish optimized; needs onnxruntime alone."""

import json, pathlib, numpy, onnxruntime

here = pathlib.Path(__file__).parent
chosen = json.loads((here / {facts!r}).read_text())
options = onnxruntime.SessionOptions()
for name, value in chosen["session"].items():
    kind = type(getattr(options, name))
    setattr(options, name, getattr(kind, value) if isinstance(value, str) else value)
path, disabled = str(here / chosen["model"]), chosen["disabled_optimizers"]
session = onnxruntime.InferenceSession(path, options, chosen["providers"], disabled_optimizers=disabled)


def ones(dtype, shape):
    if dtype == "bfloat16":  # NumPy has no such type: 0x3F80 is its 1, and 16 its number in ONNX
        bits = numpy.full(shape, 0x3F80, "uint16")
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones(shape, dtype))


feed = {{name: ones(dtype, shape) for name, dtype, shape in chosen["inputs"]}}
for port, value in zip(session.get_outputs(), session.run_with_ort_values(None, feed)):
    print(port.name, port.type, value.shape() if value.is_tensor() else "")
'''

_BY_OPENVINO = '''"""Runs a model that planish optimized; needs openvino and numpy."""

import json, pathlib, numpy, openvino

here = pathlib.Path(__file__).parent
chosen = json.loads((here / {facts!r}).read_text())
model = openvino.Core().compile_model(str(here / chosen["model"]), "CPU", chosen["openvino"])
found = model({{name: numpy.ones(shape, dtype) for name, dtype, shape in chosen["inputs"]}})
for port in model.outputs:
    print(port.any_name, port.element_type.to_string(), list(found[port].shape))
'''

_ANSWER_S = 600.0
"""Limit of passes' time."""


def export_model(task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write an optimized model, and a script that runs it with onnxruntime alone.

    Returns:
        What `deliver_model` does, and the script. It raises the same too.
    """
    files = deliver_model(task, candidate, path)
    name = task.program.file.stem
    script = path / f"run_{name}.py"
    elsewhere = settings_of(task).having(selection_of(candidate).session).elsewhere
    script.write_text((_BY_OPENVINO if elsewhere else _SCRIPT).format(facts=files[-1].name), encoding="utf-8")
    return [*files, script]


def deliver_model(task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
    """Write an optimized model and what was chosen for it.

    Returns:
        The files: the model; its weights, where it was optimized offline; the passes and the session's
        settings as JSON.

    Raises:
        PassProbeError: a pass fails, or ONNX Runtime does not take the model.
        OSError: a file cannot be written.
    """
    program, chosen = task.program, selection_of(candidate)
    settings = settings_of(task).having(chosen.session)
    name = program.file.stem
    model, file = path / f"{name}.planish.onnx", path / f"{name}.planish.json"
    path.mkdir(parents=True, exist_ok=True)
    # By a process in a sandbox: passes read a file of others, and may crash.
    with closing(PassProbe(program, settings.of_onnxruntime, _ANSWER_S)) as probe:
        probe.write(chosen.rewrites, model, sorted(chosen.disabled), offline=chosen.offline)
    facts: dict[str, Any] = {
        "model": model.name,
        "inputs": [[port.name, port.dtype, port.shape] for port in program.inputs],
        "passes": list(chosen.rewrites),
        "source": {"path": program.path, "digest": program.digest},
    }
    if settings.elsewhere:
        needs = {OPENVINO: version(OPENVINO)}
        facts |= {"needs": needs, OPENVINO: configuration(settings), "versions": {**versions(), **needs}}
    else:
        facts |= {
            "providers": list(PROVIDERS[settings.provider]),
            "session": {
                "intra_op_num_threads": settings.cores,
                "inter_op_num_threads": settings.cores,
                "enable_cpu_mem_arena": settings.arena,
                "execution_mode": f"ORT_{settings.execution.upper()}",
                # What was optimized offline is loaded as it is.
                "graph_optimization_level": level_name("none" if chosen.offline else settings.optimization),
            },
            "disabled_optimizers": [] if chosen.offline else sorted(chosen.disabled),
            "left_out": sorted(chosen.disabled),
            "offline": chosen.offline,
            "versions": dict(versions()),
        }
    file.write_text(json.dumps(versioned(facts), indent=1) + "\n", encoding="utf-8")
    weights = weights_of(model)
    return [model, *([weights] if chosen.offline and weights.exists() else []), file]
