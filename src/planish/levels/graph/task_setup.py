"""Evaluator, baselines and identities of a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache

from planish.core import (
    Candidate,
    Executor,
    Measured,
    PlanishError,
    SecondaryBaseline,
    Task,
    content_hash,
    evaluate,
)
from planish.levels.graph.evaluator import LAST_TIMING, TIMING, GraphEvaluatorSpec, limits_of
from planish.levels.graph.machine import QUANTITIES, counters
from planish.levels.graph.model_cache import final_cache_of, model_cache_of
from planish.levels.graph.pass_probe import PassProbe, PassProbeError
from planish.levels.graph.passes import RUNTIME, Selection, passes_of_kind, selection_of
from planish.levels.graph.program import GraphProgram, user_cache
from planish.levels.graph.relevance import cache_key
from planish.levels.graph.space import fitting, settings_of
from planish.levels.graph.starting_lists import class_lists
from planish.measure import SharedBaselineTime


def evaluator_spec_of(
    task: Task[GraphProgram], *, final: bool = False, counted: Collection[str] | None = None
) -> GraphEvaluatorSpec:
    """Make the spec for a task's evaluator; see `planish.core.Level.evaluator`.

    Raises:
        PlanishError: an objective cannot be measured here.
    """
    program = task.program
    names = frozenset(objective.name for objective in task.objectives)
    settings = settings_of(task)
    metered = sorted(names & set(QUANTITIES))
    if metered and counted is None:
        counted = counters(settings.provider)
    for name in metered:
        if {"power": "energy"}.get(name, name) not in (counted or ()):
            what = f"{name} is not available here: the machine has no counter of it"
            raise PlanishError(what, "See 'planish targets'.")
    return GraphEvaluatorSpec(
        program,
        settings,
        names,
        limits_of(program),
        final_cache_of(program) if final else model_cache_of(program),
        LAST_TIMING if final else TIMING,
        # Counters of energy and heat would count the baseline's calls too.
        None if metered else SharedBaselineTime(),
        remember=not final,
    )


def unoptimized() -> Selection:
    """Select nothing: every pass of the runtime is left out."""
    return Selection(disabled=frozenset(each.name for each in passes_of_kind(*RUNTIME)))


def compared(task: Task[GraphProgram], candidate: Candidate) -> Sequence[Candidate]:
    """List what the winner is compared with: the baseline, its class's list, and the winner made offline."""
    chosen, program = selection_of(candidate), task.program
    others = [Selection(), *class_lists(program)[:1], replace(chosen, offline=True)]
    return [each.candidate for each in fitting(task, others)]


def no_optimization(task: Task[GraphProgram]) -> SecondaryBaseline:
    """Return the model as it came, with every optimization of ONNX Runtime left out.

    Where the target is another runtime, it is compared with ONNX Runtime's defaults.
    """
    if not settings_of(task).elsewhere:
        return SecondaryBaseline("no optimization", unoptimized().candidate)
    spec = evaluator_spec_of(task, final=True)
    return SecondaryBaseline(
        "ONNX Runtime", Candidate(), replace(spec, settings=spec.settings.of_onnxruntime)
    )


_OF_FILES = frozenset({"compile_time", "peak_memory", "model_size"})
"""Objectives by which two files differ though the runtime makes the same of them."""


@contextmanager
def identities(task: Task[GraphProgram]) -> Generator[Callable[[Candidate], str]]:
    """Provide what names selections: by the model that ONNX Runtime makes in the end, and runs.

    Where an objective is of the file, or of the time and memory to load it, the file, what the runtime leaves
    out and the session's level count too. Whether a selection is optimized offline always counts, and so do
    the session's other settings. A selection that fails names itself.
    """
    by_file = not _OF_FILES.isdisjoint(objective.name for objective in task.objectives)
    settings = settings_of(task)
    with closing(PassProbe(task.program, settings.of_onnxruntime)) as probe:

        @cache
        def name(candidate: Candidate) -> str:
            chosen = selection_of(candidate)
            session = dict(chosen.session)
            try:
                # Another runtime does not report what it makes of a file.
                if by_file or chosen.elsewhere or settings.elsewhere:
                    rest = replace(chosen, rewrites=(), offline=False).candidate.hash
                    made = f"{probe.model_key(chosen.rewrites)} {rest}"
                else:
                    # Which level it is shows in what is made, so its name does not count.
                    level = session.pop("optimization", "")
                    key = probe.optimized(chosen.rewrites, sorted(chosen.disabled), level).key
                    made = " ".join([key, *(f"{name}={value}" for name, value in sorted(session.items()))])
            except PassProbeError:
                return candidate.hash
            return f"{made} offline" if chosen.offline else made

        yield name


def without_failing_passes(task: Task[GraphProgram], executor: Executor) -> GraphProgram | None:
    """Find the fewest passes without which the runtime answers rightly; those found before are tried first.

    Returns:
        The program whose baseline leaves them out; None where they are not the cause.
    """
    if settings_of(task).elsewhere or task.program.without:
        return None

    def is_right(names: Sequence[str]) -> bool:
        (answer,) = evaluate(executor, [Selection(disabled=frozenset(names)).candidate])
        return isinstance(answer.outcome, Measured)

    # Transformers first: they are tried first, and one of them runs all rules, so that a rule is named alone.
    every = [each.name for kind in reversed(RUNTIME) for each in passes_of_kind(kind)]
    # Inputs and tolerance decide what is wrong, too.
    key = f"{cache_key(task.program, settings_of(task))}-{content_hash(task.program.text)[:8]}-culprits.json"
    found = [name for name in user_cache().get_json(key) or () if name in every]
    if not found or not is_right(found):
        if not is_right(every):
            return None
        found = fewest(every, is_right)
        user_cache().put_json(key, sorted(found))
    return replace(task.program, without=tuple(sorted(found)), stored="")


def fewest(names: Sequence[str], is_enough: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    """Leave out of names what is not needed: parts of half of them, of a quarter, and so on to single ones.

    That is the minimizing of delta debugging (Zeller and Hildebrandt, 2002) without its tries of single
    parts: of n names one of which is needed it takes some 2 log n tries.
    """
    kept, size = list(names), len(names) // 2
    while size:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if is_enough(rest):
                kept = rest
            else:
                start += size
        size //= 2
    return kept
