"""What a call of einsum asks for beside its operands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from planish.core.fork_locks import free_after_fork

if TYPE_CHECKING:
    from planish.store import Store

PLANNING = free_after_fork()
"""Held by the thread that tunes and times: two at once would disturb each other."""


@dataclass(frozen=True)
class EinsumRequest:
    """Budget, cores and store.

    Args:
        budget_s: seconds that tuning and comparing may take on first use; 0 never tunes.
        cores: how many may be used at most; None for all that this process may use.
        store: an open store, or where it is; None for the user's own.
    """

    budget_s: float = 1.0
    cores: int | None = None
    store: Store | str | Path | None = None
