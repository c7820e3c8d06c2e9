"""Search space of patches: lists of edits of a StableHLO module (GEVO-ML, section 4).

Mutation appends a random edit or one that the structure of the network suggests; crossover is messy one-point
crossover (section 4.2). The structure also gives the patches that a search begins with, exact edits first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from planish.core import (
    EMPTY_CONTEXT,
    Candidate,
    FeatureSchema,
    ScheduleError,
    SearchContext,
    Space,
    Step,
    did_you_mean,
)
from planish.levels.hlo.edit_gains import GainRow, by_expected_gain, gains_of_runs, shipped_gains
from planish.levels.hlo.edits import (
    EDITS,
    CopyOp,
    DeleteOp,
    Edit,
    EditableModule,
    MoveOp,
    ReplaceOperand,
    SwapOps,
    TileBatch,
    identity_of,
    propose,
)
from planish.levels.hlo.patch import SCHEMA, Original, extended, original, patch_features, replay
from planish.levels.hlo.program import Program
from planish.levels.hlo.structure import Structure

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

Wants = Literal["any", "other", "less"]
"""Requirements on the result of an edit: any module; one that computes something other; or also less.

A module that answers has nothing to gain from an operation more, one that trains may: figure 5 of the paper
copies a division, which raises the gradient.
"""

_REARRANGING = (CopyOp, DeleteOp, MoveOp, ReplaceOperand, SwapOps)
"""Edits that change which values are used. All others change a number, or how something is computed."""


def meets_wants(parent: EditableModule, edit: Edit, child: EditableModule, wants: Wants) -> bool:
    """Return whether the module that an edit gives meets the requirements."""
    if wants == "less" and isinstance(edit, _REARRANGING) and not parent.live() - child.live():
        return False
    return wants == "any" or identity_of(child) != identity_of(parent)


def children(a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
    """Join two patches, shuffle the edits, and cut the list in two; the children may be illegal.

    Unlike in the paper, edits that both have stay in both, as in GEVO; and an edit of what another one makes
    comes after that one, so that more of the children are legal.
    """
    common = tuple(step for step in a.steps if step in b.steps)
    # One list of both, shuffled: messy, in the paper's word, since children may be of any length.
    rest = [step for patch in (a, b) for step in patch.steps if step not in common]
    order = [rest[int(i)] for i in rng.permutation(len(rest))]
    cut = int(rng.integers(len(order) + 1))
    return _candidate((*common, *order[:cut])), _candidate((*common, *order[cut:]))


def _candidate(steps: Iterable[Step]) -> Candidate:
    """Make a patch of edits, each moved after those that it needs and that are there."""
    waiting, ordered = list(steps), list[Step]()
    while waiting:
        prefixes = [step.id_prefix for step in waiting if isinstance(step, Edit)]
        # An edit never names itself, and never one that names it: the ids come from what it holds.
        ready = next(step for step in waiting if not any(prefix in str(step) for prefix in prefixes))
        waiting.remove(ready)
        ordered.append(ready)
    return Candidate(tuple(ordered))


MUTATIONS = 3
"""Edits of an initial individual (section 4)."""

CROSSOVER_TRIES = 10
SUGGESTED = 0.5
"""Share of mutations that take an edit that the structure suggests, unless kinds of edits are asked for; the
less, the more of these a patch has. Most edits that are drawn blindly destroy a network, most blocks that are
left out do not."""

UNWANTED = 20
"""Edits that are drawn again in a row; then one is taken that is not wanted: there may be no other."""

REMEMBERED = 64


class PatchSpace(Space):
    """Patches of a program, each of which replays and verifies.

    Args:
        kinds: names of the edits that mutation draws from; all when empty. The paper has CopyOp and DeleteOp.
        wants: of what an edit must give besides a valid module. The paper wants nothing.
        gains: of edits on the user's own modules, beside those that come with planish.

    Raises:
        ScheduleError: there is no such kind of edit.
    """

    def __init__(
        self, program: Program, kinds: Sequence[str] = (), wants: Wants = "any", gains: Sequence[GainRow] = ()
    ) -> None:
        self.program, self._gains = program, gains
        self._wants: Wants = wants
        for kind in kinds:
            if kind not in EDITS:
                raise ScheduleError(f"there is no edit '{kind}'", did_you_mean(kind, EDITS))
        self._kinds = tuple(kinds)
        self._modules: OrderedDict[Candidate, EditableModule] = OrderedDict()

    def start(self) -> Candidate:
        """Return the unchanged module."""
        return Candidate()

    def sample(self, rng: Generator) -> Candidate:
        """Draw a patch of three edits; raises ScheduleError where it finds no valid ones."""
        candidate = self.start()
        for _ in range(MUTATIONS):
            candidate = self.mutate(candidate, rng)
        return candidate

    def mutate(self, candidate: Candidate, rng: Generator) -> Candidate:
        """Append an edit, drawn until the module is valid; a new size of tiles replaces the old.

        It is drawn again where it gives what is not wanted, for a while. Half of them are among those that
        the structure suggests, as far as the patch has not got them.

        Raises:
            ScheduleError: no valid edit is found.
        """
        parent = self.module(candidate)
        edit, module = self._suggestion(candidate, rng) or self._drawn(parent, rng)
        kept = candidate
        if isinstance(edit, TileBatch):  # the last one counts: those before it would pile up
            kept = Candidate(tuple(step for step in candidate.steps if not isinstance(step, TileBatch)))
        child = kept.then(edit)
        self._remember(child, module)
        return child

    def _suggestion(self, candidate: Candidate, rng: Generator) -> tuple[Edit, EditableModule] | None:
        """Draw an edit that the structure suggests; None where it is another's turn, or it is of no use."""
        if self._kinds:
            return None
        every = self._structure.edits()
        left = [edit for edit in every if edit not in candidate.steps]
        if not left or rng.random() >= SUGGESTED * len(left) / len(every):
            return None
        edit, parent = left[int(rng.integers(len(left)))], self.module(candidate)
        try:
            module = extended(parent, (edit,))
        except ScheduleError:
            return None
        return (edit, module) if meets_wants(parent, edit, module, self._wants) else None

    def _drawn(self, parent: EditableModule, rng: Generator) -> tuple[Edit, EditableModule]:
        for _ in range(UNWANTED):
            edit, module = propose(parent, rng, self._kinds)
            if meets_wants(parent, edit, module, self._wants):
                return edit, module
        return propose(parent, rng, self._kinds)

    @cached_property
    def _structure(self) -> Structure:
        return Structure(self.module(self.start()), self._kinds)

    def seeds(self, context: SearchContext = EMPTY_CONTEXT) -> Sequence[Candidate]:
        """List what a module's structure suggests, by what such edits gained on other modules."""
        known = [*shipped_gains(), *self._gains, *gains_of_runs(context.winners())]
        return by_expected_gain(self.program.text, self.suggested, known)

    @cached_property
    def suggested(self) -> Sequence[Candidate]:
        """Suggestions of the module's structure, exact edits first; of the kinds asked for alone."""
        # Most patches begin as one before them, which is not edited again.
        patches = dict.fromkeys(Candidate(tuple(edits)) for edits in self._structure.patches())
        begun = (candidate for candidate in patches if self._is_valid(Candidate(candidate.steps[:-1])))
        return [candidate for candidate in begun if self._is_valid(candidate)]

    def focused(self, candidates: Sequence[Candidate]) -> PatchSpace:
        """Return this space: all draws are alike."""
        del candidates
        return self

    def crossover(self, a: Candidate, b: Candidate, rng: Generator) -> tuple[Candidate, Candidate]:
        """Exchange edits of two patches until both children are valid (section 4.2).

        A parent stands in for a child that is not valid in many tries.
        """
        found: list[Candidate] = []
        for _ in range(CROSSOVER_TRIES):
            pair = children(a, b, rng)
            valid = [child for child in pair if self._is_valid(child)]
            if len(valid) == 2:
                return pair
            found = found or valid
        one, other = [*found, a, b][:2]
        return one, other

    def selected(self, candidate: Candidate, indices: Sequence[int]) -> Candidate | None:
        """Return the patch of these edits alone, in their order; None where it is not valid."""
        chosen = Candidate(tuple(candidate.steps[index] for index in indices))
        return chosen if self._is_valid(chosen) else None

    def state_key(self, candidate: Candidate) -> str:
        """Name what the module computes, and in what tiles: not the patch."""
        return identity_of(self.module(candidate))

    @property
    def schema(self) -> FeatureSchema:
        """The columns of `features`; see `planish.levels.hlo.patch`."""
        return SCHEMA

    def features(self, candidates: Sequence[Candidate]) -> NDArray[np.float32]:
        """Describe patches, and the modules that they give; raises ScheduleError where one is illegal."""
        return patch_features(self._original, candidates, map(self.module, candidates))

    @cached_property
    def _original(self) -> Original:
        return Original(original(self.program))

    def module(self, candidate: Candidate) -> EditableModule:
        """Return a patch's module, not to be changed; raises ScheduleError where the patch is illegal."""
        if candidate in self._modules:
            self._modules.move_to_end(candidate)
            return self._modules[candidate]
        parent = Candidate(candidate.steps[:-1])
        if parent in self._modules and candidate.steps:
            module = extended(self._modules[parent], candidate.steps[-1:])
        else:
            module = replay(self.program, candidate)
        self._remember(candidate, module)
        return module

    def _is_valid(self, candidate: Candidate) -> bool:
        try:
            self.module(candidate)
        except ScheduleError:
            return False
        return True

    def _remember(self, candidate: Candidate, module: EditableModule) -> None:
        """Keep the modules that were needed last: a child is made from its parent's."""
        self._modules[candidate] = module
        if len(self._modules) > REMEMBERED:
            self._modules.popitem(last=False)
