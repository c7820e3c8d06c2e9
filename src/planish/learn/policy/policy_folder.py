"""Where policies lie, and which of them is for which space."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from planish.core import CanObserve, HasMachine, PlanishError
from planish.learn.policy.saved import HINT, SUFFIX, SavedPolicy, load_policy

_log = logging.getLogger("planish")


def policies_folder() -> Path:
    """Give where the user's own policies are."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "policies"


def places() -> Mapping[str, Path]:
    """Give the policies that there are, by name: the user's own, in place of shipped ones of that name."""
    shipped = Path(str(files("planish.learn.policy")))
    found = {path.stem.removeprefix("policy-"): path for path in sorted(shipped.glob(f"policy-*{SUFFIX}"))}
    return found | {path.stem: path for path in sorted(policies_folder().glob(f"*{SUFFIX}"))}


def policy_for(space: CanObserve, name: str) -> SavedPolicy:
    """Find a policy.

    Args:
        space: where it is to walk.
        name: of a policy, a file, or "auto": of those that fit the one that has learnt on vectors of the
            most similar width, of equals from most programs, and of those the user's own. With vectors of
            another width the best loops are others: on AVX2 a policy of AVX-512 chose a third of the speed.

    Raises:
        PlanishError: there is none, or it is for another space.
    """
    known = places()
    if name == "auto":
        fitting = [policy for policy in _readable(known.values()) if policy.fits(space)]
        if not fitting:
            raise PlanishError(f"no policy is for the actions of {space.observed.name}", HINT)
        ours = vector_bytes_of(space)
        # Reversed, for of equals the last one of `places` is the user's.
        return min(reversed(fitting), key=lambda each: (_apart(each.vector_bytes, ours), -each.programs))
    policy = load_policy(known.get(name, Path(name)))
    if why := policy.unfit(space):
        raise PlanishError(f"the policy '{name}' {why}", HINT)
    return policy


def _readable(paths: Iterable[Path]) -> Iterator[SavedPolicy]:
    for path in paths:
        try:
            yield load_policy(path)
        except PlanishError as error:  # one of the user's: a search has others
            _log.warning("%s; it is left out", error)


def vector_bytes_of(space: CanObserve) -> int:
    """Give the width of the vectors of a space's target; 0 where nothing is known of them."""
    return space.machine.vector_bytes if isinstance(space, HasMachine) and space.machine else 0


def _apart(one: int, other: int) -> float:
    """Tell how often one of two widths has to be doubled to be the other; 0 where one is not known."""
    return abs(math.log2(one / other)) if one and other else 0.0
