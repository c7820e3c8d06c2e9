"""Making a failing list short: what is left when no pass can be dropped."""

from collections.abc import Callable, Sequence


def minimised(passes: Sequence[str], fails: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Drop passes while the list still fails: first halves, then quarters, at last single ones.

    Args:
        passes: a list that fails.
        fails: whether a list does; must give the same answer each time.

    Returns:
        A list that fails, and does not without any one of its passes.
    """
    kept = tuple(passes)
    width = max(1, len(kept) // 2)
    while True:
        shorter = _first_failing(kept, width, fails)
        if shorter is not None:
            kept = shorter
        elif width == 1:
            return kept
        else:
            width //= 2


def _first_failing(
    passes: tuple[str, ...], width: int, fails: Callable[[tuple[str, ...]], bool]
) -> tuple[str, ...] | None:
    for start in range(0, len(passes), width):
        shorter = passes[:start] + passes[start + width :]
        if fails(shorter):
            return shorter
    return None
