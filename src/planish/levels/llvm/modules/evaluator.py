"""Evaluator of candidates of steps on functions, which prepares the module once for many of them.

A candidate is carried out in three parts: passes on the whole module, during which functions have their
attributes for inlining; pipelines on functions; passes on the whole module again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace

from planish.core import Candidate, Failed, Measured, Outcome, StageClock
from planish.core.disk_cache import DiskCache
from planish.levels.llvm.bindings.c_module import CModule
from planish.levels.llvm.bindings.protocol import Bindings, IRError, PassError
from planish.levels.llvm.function_steps import FunctionPlan, plan_of
from planish.levels.llvm.modules.function_costs import FunctionCosts, keep_only
from planish.levels.llvm.modules.space import groups_of, usual_pipeline
from planish.levels.llvm.modules.stored_costs import StoredCosts, context_name
from planish.levels.llvm.modules.transform import (
    CHILD_LIMITS,
    LAST,
    ModuleRecipe,
    Sizes,
    begin,
    end,
    initial_pipeline,
    set_code_options,
    single,
    whole_bindings,
)
from planish.sandbox import Limits, SandboxPolicy

_KEPT = 3
"""Prepared modules that are kept: groups are tried on the best of those that were measured last."""


@dataclass
class PreparedFunctions:
    """A module after the passes on the whole module, and its functions by the usual list.

    Args:
        begun: its bitcode. Writing and reading changes the order of uses, and so what passes do: all that is
            carried out begins with reading it.
        total: the cost of the whole module by the usual list.
        costs: of its functions.
    """

    begun: bytes
    total: float = 0.0
    costs: Mapping[str, float] = field(default_factory=dict[str, float])
    _groups: dict[tuple[str, ...], CModule] = field(default_factory=dict[tuple[str, ...], CModule])
    _held: ExitStack = field(default_factory=ExitStack)

    def group(self, bindings: Bindings, names: tuple[str, ...], objective: str) -> CModule:
        """Return the module in which some functions alone are defined."""
        if not self._groups:
            with closing(single(bindings.parse(self.begun))) as module:
                groups = [each.parts for each in groups_of(self.costs, objective)]
                self._cut(module, groups)
        if names not in self._groups:
            with closing(single(bindings.parse(self.begun))) as module:
                self._cut(module, [names])
        return self._groups[names]

    def close(self) -> None:
        """Free the modules of groups."""
        self._held.close()

    def _cut(self, module: CModule, groups: Sequence[tuple[str, ...]]) -> None:
        """Cut by halves: each step copies what is left of the module, and not the whole."""
        if not groups:
            return
        part = module.clone()
        keep_only(part, {name for group in groups for name in group})
        if len(groups) == 1:
            self._groups[groups[0]] = part
            self._held.callback(part.close)
            return
        middle = len(groups) // 2
        with closing(part):
            self._cut(part, groups[:middle])
            self._cut(part, groups[middle:])


class FunctionEvaluator:
    """Carries out and measures candidates of steps on functions.

    Args:
        module: prepared; it is not changed.
        bindings: that made it.
        objective: `text_bytes`, `loaded_bytes` or `instructions`, of single functions and of the whole.
        stored: costs that searches on other modules measured.
    """

    def __init__(
        self, module: CModule, bindings: Bindings, objective: str, stored: StoredCosts | None = None
    ) -> None:
        self._module, self._bindings, self._objective = module, bindings, objective
        self._start = initial_pipeline(bindings)
        self._costs = FunctionCosts(objective, stored=stored)
        self._prepared: OrderedDict[object, PreparedFunctions] = OrderedDict()
        self._rest: float | None = None

    def evaluate(self, candidate: Candidate, clock: StageClock) -> Outcome:
        """Measure a candidate as a search does.

        One with a list for a single group is measured on these functions alone: its total is that of the
        module with the usual list, less what they cost there, and `parts` has those that changed. Of all
        others the whole module is made, though code of no function whose text is known.
        """
        plan = plan_of(candidate)
        try:
            if (group := only_group(plan)) is not None:
                return self._of_group(plan, *group, clock)
            prepared, costs, total = self._whole(plan, clock)
            if plan.lists == ((usual_pipeline(), ()),):
                prepared.total, prepared.costs = total, costs
            return Measured({self._objective: total}, parts=_floats(costs))
        except PassError as error:
            return Failed("transform", "refused by LLVM", error.message)
        except IRError as error:
            return Failed("build", "no code is made of it", error.message)

    def made(self, plan: FunctionPlan) -> CModule:
        """Make the whole module; the caller closes it.

        Raises:
            PassError: LLVM refuses a pipeline, or what is made is invalid.
        """
        module = single(self._bindings.parse(self._prepare(plan).begun))
        try:
            end(module, recipe_of(plan, tuple(module.definitions().by_name), self._start))
        except BaseException:
            module.close()
            raise
        return module

    def _of_group(
        self, plan: FunctionPlan, pipeline: str, names: tuple[str, ...], clock: StageClock
    ) -> Outcome:
        prepared = self._prepare(plan)
        if not prepared.costs:
            usual = replace(plan, lists=((usual_pipeline(), ()),))
            _, prepared.costs, prepared.total = self._whole(usual, clock)
        with clock("transform"):
            module = prepared.group(self._bindings, names, self._objective)
            found = self._costs.try_list(module, pipeline)
        if found is None:
            return Failed("transform", "refused by LLVM", pipeline)
        before = prepared.costs
        changed = {name: found[name] for name in names if found.get(name, before[name]) != before[name]}
        total = prepared.total + sum(cost - before[name] for name, cost in changed.items())
        return Measured({self._objective: total}, parts=_floats(changed))

    def _whole(self, plan: FunctionPlan, clock: StageClock) -> tuple[PreparedFunctions, Sizes, float]:
        """Make a whole module; return what it was made of, and the costs of its functions and of all."""
        with clock("transform"):
            prepared = self._prepare(plan)
            module = self.made(plan)
        with closing(module), clock("build"):
            whole = float(module.instructions())
            costs, rest = self._costs.measure(module, makes_all=self._rest is None)
        if self._objective == "instructions":
            return prepared, costs, whole
        # The code between functions is measured once, when code of all of them is made.
        self._rest = rest if self._rest is None else self._rest
        return prepared, costs, sum(costs.values()) + self._rest

    def _prepare(self, plan: FunctionPlan) -> PreparedFunctions:
        """Run the passes on the whole module with a plan's inlining, or take what was made before."""
        if plan.inlining in self._prepared:
            self._prepared.move_to_end(plan.inlining)
            return self._prepared[plan.inlining]
        with closing(self._module.clone()) as module:
            begin(module, plan.inlining, self._start)
            found = self._prepared[plan.inlining] = PreparedFunctions(module.bitcode())
        while len(self._prepared) > _KEPT:
            self._prepared.popitem(last=False)[1].close()
        return found


@dataclass(frozen=True)
class FunctionEvaluatorSpec:
    """Makes an evaluator of candidates of steps on functions, for a search that keeps its own time.

    Args:
        bitcode: the module, unoptimized.
        objective: `text_bytes`, `loaded_bytes` or `instructions`.
        stored: a cache of costs of functions, which other processes may write to; None: none are stored.
        options: of LLVM, in the process that makes an evaluator.
    """

    bitcode: bytes
    objective: str
    stored: DiskCache | None = None
    options: tuple[str, ...] = ()

    @property
    def sandbox(self) -> SandboxPolicy:
        """Return the policy: costs may be stored."""
        return SandboxPolicy.for_code([self.stored.folder] if self.stored else [])

    @property
    def limits(self) -> Limits:
        """Return the limits of one evaluation: a search that ends abandons what is under way."""
        s = CHILD_LIMITS.seconds
        return Limits(transform=s, build=s, lifetime=whole_bindings().lifetime)

    def __call__(self) -> FunctionEvaluator:
        set_code_options(self.options)
        bindings = whole_bindings()
        module = single(bindings.parse(self.bitcode))
        stored = StoredCosts(self.stored, context_name(module.text())) if self.stored else None
        return FunctionEvaluator(module, bindings, self.objective, stored)


def recipe_of(plan: FunctionPlan, names: Collection[str], start: str) -> ModuleRecipe:
    """Return the recipe of a plan.

    Args:
        plan: it.
        names: the functions of the module after the passes on the whole of it.
        start: these passes.
    """
    return ModuleRecipe(start, tuple(plan.resolved(names)), LAST, plan.inlining)


def make_planned(code: str | bytes, plan: FunctionPlan, start: str, last: str) -> bytes:
    """Make a module by a plan; return its bitcode.

    Args:
        code: the module, unoptimized.
        plan: the lists of its functions, and what is inlined.
        start, last: passes on the whole module, before and after the lists.

    Raises:
        IRError: the module is malformed.
        PassError: LLVM refuses a pipeline, or what is made is invalid.
    """
    with closing(single(whole_bindings().parse(code))) as module:
        begin(module, plan.inlining, start)
        begun = module.bitcode()
    with closing(single(whole_bindings().parse(begun))) as module:
        recipe = recipe_of(plan, tuple(module.definitions().by_name), start)
        end(module, replace(recipe, last=last))
        return module.bitcode()


def only_group(plan: FunctionPlan) -> tuple[str, tuple[str, ...]] | None:
    """Return the one list on some functions, where all others have the usual one; None for other plans."""
    match plan.lists:
        case ((pipeline, names), (others, ())) if names and others == usual_pipeline():
            return pipeline, names
        case _:
            return None


def _floats(sizes: Mapping[str, float]) -> dict[str, float]:
    return {name: float(size) for name, size in sizes.items()}
