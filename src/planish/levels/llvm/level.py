"""Level `llvm`: modules of LLVM IR, whose candidates are pass lists."""

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
    Identify,
    Level,
    Objective,
    PlanishError,
    SearchContext,
    Space,
    Step,
    Target,
    Task,
    unknown,
)
from planish.levels.llvm.program import IRProgram, is_ir

if TYPE_CHECKING:
    from planish.levels.llvm.evaluator import LlvmEvaluatorSpec

OPTIONS = ("function", "args", "stdin", "harness", "run", "link", "cases", "processor", "backend")
SUFFIXES = (".ll", ".bc", ".c")


class LlvmLevel(Level[IRProgram]):
    """Modules of LLVM IR; a candidate is a pass list, measured by the size of what it makes, or its time."""

    name = "llvm"
    version = "7"
    objectives: Mapping[str, Objective] = {
        "instructions": Objective("instructions", exact=True),
        "text_bytes": Objective("text_bytes", "bytes", exact=True),
        "time_s": Objective("time_s", "s"),
    }
    spaces = ("passes", "uniform", "safe", "functions")
    searchers = ("portfolio", "random-minimize", "genetic", "random")
    summary_sections = ("functions", "size", "passes", "verified", "repeat")

    @property
    def steps(self) -> Mapping[str, type[Step]]:
        """Step name to class."""
        from planish.levels.llvm.c_source import CSource
        from planish.levels.llvm.function_steps import FunctionAttribute, FunctionPasses
        from planish.levels.llvm.passes.pipeline import Pass

        return {each.__name__: each for each in (Pass, FunctionAttribute, FunctionPasses, CSource)}

    def accepts(self, source: str) -> bool:
        """Return whether it is IR, or a file named `*.ll`, `*.bc` or `*.c`."""
        return source.endswith(SUFFIXES) or is_ir(source)

    def load(self, source: str, options: Mapping[str, str]) -> IRProgram:
        """Read a program.

        Args:
            source: the path of a `.ll`, `.bc` or `.c` file, IR itself, or a canonical text.
            options: `function` (tune this one alone), `args` ("-n 5"), `stdin` (a file), `harness` (a `.c`
                or `.ll` file with the `main` that a library lacks), `run` (yes: candidates are run and their
                answers compared, also where no objective needs it; or how it is run, "./prog 5 < input"),
                `link` (libraries: "-lz -pthread"), `cases` (a file of further inputs, on which answers are
                compared: in each line arguments, and perhaps `< FILE`), `processor` (native, or a name of
                clang's), and `backend` (libllvm or llvmlite).

        Raises:
            ProgramError: as `read_program`.
            PlanishError: an option or a back end is unknown.
            TargetError: the back end is not installed, or there is no compiler for C.
        """
        from planish.levels.llvm.bindings.libraries import open_bindings
        from planish.levels.llvm.source import read_program

        for name in options:
            if name not in OPTIONS:
                raise unknown("level 'llvm' has no option", name, OPTIONS)
        backend = options.get("backend", "")
        return replace(read_program(source, options, open_bindings(backend)), backend=backend)

    def specialize(self, program: IRProgram, objectives: Sequence[Objective]) -> IRProgram:
        """Return the module that clang -O3's passes start from, where the time leads and the source is C."""
        if program.fast is None or objectives[0].name != "time_s":
            return program
        return replace(program.fast, running=program.running, backend=program.backend)

    def read(self, text: str, target: Target) -> IRProgram:
        """Read a canonical text; raises ProgramError where it is none."""
        from planish.levels.llvm.bindings.libraries import usable_bindings
        from planish.levels.llvm.source import read_text

        backend = target.toolchain.get("backend", "")
        return replace(read_text(text, usable_bindings(backend)), backend=backend)

    def target(self, program: IRProgram, cores: int) -> Target:
        """Describe this machine; raises TargetError where it lacks what is asked of it."""
        from planish.levels.llvm.machine import llvm_target

        return llvm_target(cores, program.backend)

    def runs_user_code(self, task: Task[IRProgram]) -> bool:
        """Return whether candidates are run: where the time is asked for, or the user asked for it."""
        from planish.levels.llvm.task_setup import is_run

        return is_run(task)

    def space(self, task: Task[IRProgram], name: str) -> Space:
        """Make a space of pass lists, or `functions`, of lists for single functions.

        Raises:
            PlanishError: there is no such space, or none for these objectives.
            TargetError: the back end cannot treat single functions.
        """
        if name == "functions":
            return self._function_space(task)
        from planish.levels.llvm.machine import elements_of
        from planish.levels.llvm.passes.space import pass_space
        from planish.levels.llvm.task_setup import baseline_text

        elements, objective = elements_of(task.target), task.objectives[0].name
        small = partial(baseline_text, task)
        return pass_space(name, elements, objective, ir=task.program.ir, small=small)

    def _function_space(self, task: Task[IRProgram]) -> Space:
        from planish.levels.llvm.bindings.libraries import open_bindings
        from planish.levels.llvm.hot.functions import HotFunctionSpace
        from planish.levels.llvm.hot.programs import require_bindings
        from planish.levels.llvm.modules.space import FunctionSpace
        from planish.levels.llvm.task_setup import prepared

        leads, *others = (each.name for each in task.objectives)
        if others:
            raise PlanishError("functions are tuned by one objective", "Name the one that leads.")
        backend = task.target.toolchain["backend"]
        if leads != "time_s":
            return FunctionSpace(prepared(task), leads, backend)
        require_bindings(open_bindings(backend))
        return HotFunctionSpace(task.program)

    def functions(self, program: IRProgram) -> Mapping[str, IRProgram]:
        """Return the functions of a module as modules of their own, by name."""
        from planish.levels.llvm.bindings.libraries import open_bindings
        from planish.levels.llvm.source import functions_of

        return functions_of(program, open_bindings(program.backend))

    def default_searcher(self, task: Task[IRProgram], space: str) -> str:
        """Name the searcher of a task's space where the user names none."""
        if space != "functions":
            return super().default_searcher(task, space)
        return "hottest-first" if task.objectives[0].name == "time_s" else "parts"

    def warm_start(self, task: Task[IRProgram], context: SearchContext) -> Sequence[Candidate]:
        """Return the lists that were best on similar modules, and those of the user's own table."""
        from planish.levels.llvm.passes.space import own_lists, recommended

        own = own_lists(task.objectives[0].name, self.version)
        return list(dict.fromkeys([*recommended(task.program.ir, context.winners()), *own]))

    def known_beforehand(self) -> Mapping[str, str]:
        """Return the lists that the default search begins with."""
        from planish.core.own_tables import read_table
        from planish.levels.llvm.passes.catalogue import load_coreset
        from planish.levels.llvm.passes.space import OWN_LISTS

        own = read_table(OWN_LISTS, self.version)
        return {
            "lists that were best for similar modules in your store": "",
            **({f"{len(own[0])} lists of your own modules, for instructions": own[1]} if own else {}),
            f"the coreset, {len(load_coreset())} lists": "",
        }

    def evaluator(self, task: Task[IRProgram], *, final: bool = False) -> LlvmEvaluatorSpec:
        """Make the spec for the task's evaluator.

        Raises:
            ProgramError: the time is asked for, and there is no `main`.
        """
        from planish.levels.llvm.task_setup import evaluator_spec_of

        return evaluator_spec_of(task, final=final)

    def baseline(self, task: Task[IRProgram]) -> Candidate:
        """Return -Oz as clang means it, or -O3 where the time leads; see `task_setup.baseline_of`."""
        from planish.levels.llvm.task_setup import baseline_of

        return baseline_of(task)

    def variants(self, task: Task[IRProgram], candidate: Candidate) -> Sequence[Candidate]:
        """Return the baseline where size leads: the winner then is never worse than it."""
        del candidate
        return (self.baseline(task),) if task.objectives[0].exact else ()

    def identities(self, task: Task[IRProgram]) -> AbstractContextManager[Identify]:
        """Return which pass lists make the same code, where the time leads."""
        from planish.levels.llvm.task_setup import identities

        return identities(task)

    def analyzer(self, task: Task[IRProgram]) -> Analyze:
        """Return the function that measures the sizes before and after, and without each pass."""
        from planish.levels.llvm.describe import measured

        return partial(measured, task)

    def public_text(self, program: IRProgram) -> str:
        """Return the module, without the inputs with which it is run, and the harness that runs it."""
        return f"; {program.title}\n{program.ir}"

    def text_format(self, task: Task[IRProgram]) -> str:
        """Return the rules of a source in C, which is taken where the answers of candidates are compared."""
        from planish.levels.llvm.c_source import FORMAT
        from planish.levels.llvm.task_setup import is_run

        return FORMAT if is_run(task) and not task.program.linked else ""

    def candidate_of_text(self, task: Task[IRProgram], text: str) -> Candidate:
        """Return the candidate of a source in C; raises PlanishError where none is taken."""
        from planish.levels.llvm.c_source import CSource, check_text

        if not self.text_format(task):
            return super().candidate_of_text(task, text)
        check_text(text)
        return Candidate((CSource(text),))

    def describe(
        self, task: Task[IRProgram], candidate: Candidate, analysis: Mapping[str, Any] = NO_ANALYSIS
    ) -> Mapping[str, str]:
        """Show the sizes before and after, what each pass contributes, and the command that repeats it."""
        from planish.levels.llvm.describe import described

        return described(task, candidate, analysis)

    def export(self, task: Task[IRProgram], candidate: Candidate, path: Path) -> Sequence[Path]:
        """Write the optimized module and its object, the module before, the pipeline, and the command."""
        from planish.levels.llvm.export import export_module

        return export_module(task, candidate, path)

    def machine(self) -> Mapping[str, str]:
        """Return the level's facts about this machine, by name."""
        from planish.levels.llvm.machine import machine_facts

        return machine_facts()
