"""The level `hlo`: StableHLO modules with a workload, whose candidates are patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planish.core import (
    NO_ANALYSIS,
    Candidate,
    FinalChecks,
    Level,
    Objective,
    ProgramError,
    Space,
    Step,
    Target,
    Task,
    unknown,
)

if TYPE_CHECKING:
    from planish.levels.hlo.evaluator import HloEvaluatorSpec
    from planish.levels.hlo.program import Program
    from planish.levels.hlo.scored import ScoredProgram
    from planish.levels.hlo.space import Wants
    from planish.levels.hlo.workload import Workload

OPTIONS = ("workload", "data", "metric", "function", "backend")
SUFFIXES = (".mlir", ".stablehlo", ".mlirbc")
PAPER = ("CopyOp", "DeleteOp")


class HloLevel(Level["ScoredProgram"]):
    """StableHLO modules; a candidate is a patch, measured by the module's time and by its error on data."""

    name = "hlo"
    version = "7"
    objectives: Mapping[str, Objective] = {
        "time_s": Objective("time_s", "s"),
        "error": Objective("error", exact=True, share=True),
        "loss": Objective("loss", exact=True),
    }
    spaces = ("patches", "paper", "exact")
    searchers = ("nsga2", "gevo", "genetic", "random")
    summary_sections = ("edits", "diff")

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class; the steps are edits."""
        from planish.levels.hlo.edits import EDITS

        return EDITS

    def accepts(self, source: str) -> bool:
        """Return whether it is StableHLO text, or a file named `*.mlir`, `*.stablehlo` or `*.mlirbc`."""
        return source.endswith(SUFFIXES) or ("stablehlo." in source and "\n" in source)

    def load(self, source: str, options: Mapping[str, str]) -> ScoredProgram:
        """Read a program.

        Args:
            source: the path of a file, the module's text, or a canonical text, which brings its workload.
            options: `workload` (a `.toml` file, or a `.py` file, which is executed; else the `.toml` file
                beside the module; "outputs" compares with the module's own), `data` (the folder of the
                examples), `metric` (its name, or FILE.py:FUNCTION, which is executed), `function` (which is
                evolved; else `main`), and `backend` (xla or iree).

        Raises:
            ProgramError: a file is missing or malformed, or the workload does not fit the module.
            PlanishError: an option or a back end is unknown.
            TargetError: the back end is not installed.
        """
        from planish.levels.hlo.machine import versions
        from planish.levels.hlo.scored import ScoredProgram, is_scored, read_scored

        for name in options:
            if name not in OPTIONS:
                raise unknown("level 'hlo' has no option", name, OPTIONS)
        backend = options.get("backend", "")
        versions(backend)
        if is_scored(source):
            return replace(read_scored(source), backend=backend)
        module, workload = _module(source, options.get("function", "")), _workload(source, options)
        program = ScoredProgram(module, workload, backend=backend)
        # Imported once the module is read, which reports it where jaxlib is missing.
        from planish.levels.hlo.scoring.metrics import check_suits

        check_suits(program.module, program.workload)
        return program

    def read(self, text: str, target: Target) -> ScoredProgram:
        """Read a canonical text; raises ProgramError where it is none."""
        from planish.levels.hlo.scored import read_scored

        return replace(read_scored(text), backend=target.toolchain.get("backend", ""))

    def digest(self, path: Path) -> str:
        """Name a folder of data, or a file, by its content; raises ProgramError where it cannot be read."""
        from planish.levels.hlo.workload.files import digest

        return digest(path)

    def target(self, program: ScoredProgram, cores: int) -> Target:
        """Describe this machine; raises TargetError where it lacks what is asked of it."""
        from planish.levels.hlo.machine import hlo_target

        return hlo_target(cores, program.backend)

    def runs_user_code(self, task: Task[ScoredProgram]) -> bool:
        """Return whether candidates may do anything: never, a module only computes."""
        del task
        return False

    def default_objectives(self, program: ScoredProgram) -> Sequence[str]:
        """Name the time, and what the workload's metric gives: by time alone a random answer wins."""
        from planish.levels.hlo.workload.spec import measured_as

        return "time_s", measured_as(program.workload)

    def space(self, task: Task[ScoredProgram], name: str) -> Space:
        """Make a space: "patches" of all edits, "paper" of GEVO-ML's two, "exact": answers stay.

        But in the paper's, edits that change nothing are drawn again, and those of a module that is not
        trained which free nothing.
        """
        from planish.levels.hlo.edit_gains import own_gains
        from planish.levels.hlo.edits import EXACT
        from planish.levels.hlo.space import PatchSpace

        if name not in self.spaces:
            raise unknown("level 'hlo' has no space", name, self.spaces)
        # In training an edit that frees nothing may still lead to better weights; in inference it can only be
        # slower or less right.
        wants: Wants = "any" if name == "paper" else "other" if task.program.workload.training else "less"
        kinds = {"paper": PAPER, "exact": EXACT}.get(name, ())
        return PatchSpace(task.program.module, kinds, wants, own_gains(self.version))

    def default_searcher(self, task: Task[ScoredProgram], space: str) -> str:
        """Return the paper's searcher for the paper's space."""
        del task
        return "gevo" if space == "paper" else self.searchers[0]

    def known_beforehand(self) -> Mapping[str, str]:
        """Return the tables by which the patches of the default search are ordered."""
        from planish.core.own_tables import read_table
        from planish.levels.hlo.edit_gains import OWN_GAINS, shipped_table

        table, own = shipped_table(), read_table(OWN_GAINS, self.version)
        return {
            f"gains of kinds of edits on {len(table['modules'])} networks": table["judged"],
            **({f"gains of kinds of edits on {len(own[0])} modules of yours": own[1]} if own else {}),
            "finalists of your runs for other modules": "",
        }

    def evaluator(self, task: Task[ScoredProgram], *, final: bool = False) -> HloEvaluatorSpec:
        """Make the spec for the task's evaluator; both see the search's examples alone."""
        from planish.levels.hlo.evaluator import evaluator_spec_of

        return evaluator_spec_of(task, final=final)

    def final_checks(self, task: Task[ScoredProgram]) -> FinalChecks:
        """Score finalists on all parts of the data, compare both back ends, and measure the original form."""
        from planish.levels.hlo.evaluator import cross_checks, original_of, scores_at_the_end

        original = partial(original_of, task) if task.program.workload.original else None
        return FinalChecks(original, partial(scores_at_the_end, task), partial(cross_checks, task))

    def describe(
        self, task: Task[ScoredProgram], candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        """Show the edits one by one, and the module before and after."""
        del analysis
        from planish.levels.hlo.patch import described

        return described(task, candidate)

    def export(self, task: Task[ScoredProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write the optimized module, its text for compilers, the patch, and what it changes."""
        from planish.levels.hlo.patch import export_module

        return export_module(task, candidate, path)

    def missing(self) -> str:
        """Return which library is not installed, and how to install it; empty where none is missing."""
        from planish.core import TargetError
        from planish.levels.hlo.machine import versions

        try:
            versions()
        except TargetError as error:
            return str(error)
        return ""

    def machine(self) -> Mapping[str, str]:
        """Return facts of this machine by name: the processor and the compilers."""
        from planish.levels.hlo.machine import machine_facts

        return machine_facts()


def _module(source: str, function: str) -> Program:
    from planish.levels.hlo.program import program_from, read_program

    if source.endswith(SUFFIXES):
        return read_program(Path(source), function)
    return program_from(source, function)


def _workload(source: str, options: Mapping[str, str]) -> Workload:
    from planish.levels.hlo.workload.files import find_workload, own_outputs, read_workload, with_metric
    from planish.levels.hlo.workload.spec import OUTPUTS

    named, data, metric = (options.get(name, "") for name in ("workload", "data", "metric"))
    path = Path(named) if named else None
    if path is None and source.endswith(SUFFIXES):
        path = find_workload(source)
    if path is None:
        raise ProgramError("the module has no workload", 'Name one: workload="FILE.toml", or "outputs".')
    found = own_outputs(data) if named == OUTPUTS else read_workload(path, data)
    return with_metric(found, metric) if metric else found
