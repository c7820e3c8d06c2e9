"""The level `graph`: ONNX models, whose candidates are ordered selections of graph passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import (
    NO_ANALYSIS,
    Analyze,
    Candidate,
    Executor,
    FinalChecks,
    Identify,
    Level,
    Objective,
    SearchContext,
    Space,
    Step,
    Target,
    Task,
    unknown,
)

if TYPE_CHECKING:
    from planish.levels.graph.evaluator import GraphEvaluatorSpec
    from planish.levels.graph.program import GraphProgram

MODEL_OPTIONS = ("shape", "batch", "inputs", "labels", "allow", "tolerance", "session")
SUFFIXES = (".onnx",)
LEARNT = 3
"""Lists learnt from other models that a search begins with."""


class GraphLevel(Level["GraphProgram"]):
    """ONNX models; a candidate is a selection of graph passes, verified and measured by ONNX Runtime."""

    name = "graph"
    version = "3"
    objectives: Mapping[str, Objective] = {
        "latency": Objective("latency", "s"),
        "throughput": Objective("throughput", "items/s", "up"),
        "compile_time": Objective("compile_time", "s"),
        "peak_memory": Objective("peak_memory", "MiB"),
        "model_size": Objective("model_size", "bytes", exact=True),
        "accuracy": Objective("accuracy", "", "up"),
        "energy": Objective("energy", "J"),
        "power": Objective("power", "W"),
        "temperature": Objective("temperature", "°C"),
    }
    spaces = ("relevant", "all", "exact")
    searchers = ("portfolio", "genetic", "random", "nsga2")
    summary_sections = ("class", "passes", "compared", "relevance")
    exports_unverified = False

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class."""
        from planish.levels.graph.passes import STEPS

        return STEPS

    def accepts(self, source: str) -> bool:
        """Return whether it is a file named `*.onnx`, or the canonical text of a model."""
        if source.endswith(SUFFIXES):
            return True
        if "\n" not in source:  # texts of other levels are asked about, too: the import is saved
            return False
        from planish.levels.graph.program import is_canonical

        return is_canonical(source)

    def load(self, source: str, options: Mapping[str, str]) -> GraphProgram:
        """Read a model.

        Args:
            source: the path of a file, or a canonical text, which names one.
            options: `shape` ("x=1,3,224,224" for inputs, "length=128" for named dimensions), `batch` (a
                number, for first dimensions that are open), `inputs` and `labels` (`.npz` or `.npy` files),
                `allow` ("fp16,mixed,int8,int8_static": passes that change results), `tolerance` ("0.02": how
                far answers may be off then, of the largest number), `session` ("search": candidates may set
                the session); and of the session `optimization` (all, extended, basic, none),
                `execution` (sequential, parallel), `arena` (on, off) and `provider` (cpu, cuda, openvino;
                search: candidates may run by OpenVINO).

        Raises:
            ProgramError: the file cannot be read, or is not a model that can be tuned; an option is wrong.
            TargetError: a library is missing.
        """
        from planish.levels.graph.feeds import check_given
        from planish.levels.graph.installed import SEARCH, SETTINGS, session_settings, versions
        from planish.levels.graph.program import is_canonical
        from planish.levels.graph.source import read_model, read_text

        known = (*MODEL_OPTIONS, *SETTINGS)
        for name in options:
            if name not in known:
                raise unknown("level 'graph' has no option", name, known)
        versions()
        given = {k: v for k, v in options.items() if k in SETTINGS and (k, v) != ("provider", SEARCH)}
        settings = session_settings(given)
        if is_canonical(source):
            return replace(read_text(source), settings=settings)
        program = read_model(Path(source), options)
        check_given(program)
        return replace(program, settings=settings)

    def read(self, text: str, target: Target) -> GraphProgram:
        """Read a canonical text; raises ProgramError where it is none, or a file has changed."""
        from planish.levels.graph.installed import session_settings, settings_in
        from planish.levels.graph.source import read_text

        return replace(read_text(text), settings=session_settings(settings_in(target.toolchain)))

    def digest(self, path: Path) -> str:
        """Name a model, or a file of inputs or labels, by its content; raises ProgramError without one."""
        from planish.levels.graph.source import any_digest

        return any_digest(path)

    def target(self, program: GraphProgram, cores: int) -> Target:
        """Describe this machine and the session; raises TargetError where it lacks what is asked of it."""
        from planish.levels.graph.machine import graph_target

        return graph_target(cores, program.settings, providers=program.providers)

    def runs_user_code(self, task: Task[GraphProgram]) -> bool:
        """Return whether candidates may do anything: never, a model only computes."""
        del task
        return False

    def space(self, task: Task[GraphProgram], name: str) -> Space:
        """Make a space: "relevant", "all" or "exact"; see `planish.levels.graph.space.space_of`."""
        from planish.levels.graph.space import space_of

        if name not in self.spaces:
            raise unknown("level 'graph' has no space", name, self.spaces)
        return space_of(task, name)

    def warm_start(self, task: Task[GraphProgram], context: SearchContext) -> Sequence[Candidate]:
        """Return the lists that did best on other models of the same class."""
        from planish.levels.graph.starting_lists import known_list, recognition_of

        if not (tried := context.history()):
            return ()
        known = known_list(tried, recognition_of(task.program).classes)
        return known.ranked[:LEARNT] if known else ()

    def known_beforehand(self) -> Mapping[str, str]:
        """Return the lists that the default search begins with."""
        return {
            "lists that did best on models of the same class in your store": "",
            "the passes of the model's class in table 4 of the paper": "",
        }

    def evaluator(self, task: Task[GraphProgram], *, final: bool = False) -> GraphEvaluatorSpec:
        """Make the spec for the task's evaluator; raises PlanishError where a counter is missing."""
        from planish.levels.graph.task_setup import evaluator_spec_of

        return evaluator_spec_of(task, final=final)

    def baseline(self, task: Task[GraphProgram]) -> Candidate:
        """Return the file as it came, under ONNX Runtime's defaults, without passes that are wrong for it."""
        return task.program.baseline.candidate

    def with_correct_baseline(self, task: Task[GraphProgram], executor: Executor) -> GraphProgram | None:
        """Find the passes that make ONNX Runtime's defaults wrong, and leave them out of the baseline."""
        from planish.levels.graph.task_setup import without_failing_passes

        return without_failing_passes(task, executor)

    def variants(self, task: Task[GraphProgram], candidate: Candidate) -> Sequence[Candidate]:
        """Return the baseline, so that the winner is never worse, and what it is compared with besides."""
        from planish.levels.graph.task_setup import compared

        return compared(task, candidate)

    def identities(self, task: Task[GraphProgram]) -> AbstractContextManager[Identify]:
        """Return the context that names selections by their results, to remove idle passes in the end."""
        from planish.levels.graph.task_setup import identities

        return identities(task)

    def final_checks(self, task: Task[GraphProgram]) -> FinalChecks:
        """Measure ONNX Runtime without any optimization beside the baseline at the end."""
        from planish.levels.graph.task_setup import no_optimization

        return FinalChecks(partial(no_optimization, task))

    def summary(self, task: Task[GraphProgram]) -> Sequence[str]:
        """List the class and why; and how many passes are relevant, once the search has found that out."""
        from planish.levels.graph.description import introduced

        return introduced(task)

    def analyzer(self, task: Task[GraphProgram]) -> Analyze:
        """Return the function that measures each pass alone and left out, and counts nodes."""
        from planish.levels.graph.description import analyze

        return partial(analyze, task)

    def describe(
        self, task: Task[GraphProgram], candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        """Show the class, the passes with their effects, nodes before and after, and what was pruned."""
        from planish.levels.graph.description import described

        return described(task, candidate, analysis)

    def export(self, task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write the optimized model, the selection as JSON, and a script that runs it."""
        from planish.levels.graph.description import export_model

        return export_model(task, candidate, path)

    def write_artifacts(self, task: Task[GraphProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write the optimized model, and the selection as JSON."""
        from planish.levels.graph.description import deliver_model

        return deliver_model(task, candidate, path)

    def missing(self) -> str:
        """Return which library is not installed, and how to install it; empty where none is missing."""
        from planish.core import TargetError
        from planish.levels.graph.installed import versions

        try:
            versions()
        except TargetError as error:
            return str(error)
        return ""

    def machine(self) -> Mapping[str, str]:
        """Return the level's facts about this machine, by name."""
        from planish.levels.graph.machine import machine_facts

        return machine_facts()
