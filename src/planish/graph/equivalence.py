"""When two selections make the same of a model, as far as its objectives can tell."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache

from planish.core import Candidate, Task
from planish.graph.evaluator_spec import settings_of
from planish.graph.passes import Selection, selection_of
from planish.graph.program import GraphProgram
from planish.graph.relevance import Examiner, ExaminerError

_OF_FILES = frozenset({"compile_time", "peak_memory", "model_size"})
"""Objectives by which two files differ though the runtime makes the same of them."""


@contextmanager
def identities(task: Task[GraphProgram]) -> Generator[Callable[[Candidate], str]]:
    """Give what names selections: by the model that ONNX Runtime makes in the end, and runs.

    Where an objective is of the file, or of the time and memory to load it, the file, what the runtime leaves
    out and the session's level count too. Whether a selection is optimised offline always counts, and so do
    the session's other settings. A selection that fails names itself.
    """
    by_file = not _OF_FILES.isdisjoint(objective.name for objective in task.objectives)
    settings = settings_of(task)
    with closing(Examiner(task.program, settings.of_onnxruntime)) as examiner:

        @cache
        def name(candidate: Candidate) -> str:
            chosen = selection_of(candidate)
            try:
                # What another runtime makes of a file it does not tell.
                elsewhere = chosen.elsewhere or settings != settings.of_onnxruntime
                made = _made(examiner, chosen, by_file=by_file or elsewhere)
            except ExaminerError:
                return candidate.hash
            return f"{made} offline" if chosen.offline else made

        yield name


def _made(examiner: Examiner, chosen: Selection, *, by_file: bool) -> str:
    if not by_file:
        # Which level it is shows in what is made, so its name does not count.
        session = dict(chosen.session)
        level = session.pop("optimization", "")
        made = examiner.optimised(chosen.rewrites, sorted(chosen.disabled), level).name
        return " ".join([made, *(f"{name}={value}" for name, value in sorted(session.items()))])
    rest = replace(chosen, rewrites=(), offline=False).candidate.hash
    return f"{examiner.made(chosen.rewrites)} {rest}"
