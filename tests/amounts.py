"""How much the tests try."""

import math
import os

SHARE = float(os.environ.get("PLANISH_TEST_SHARE", "1"))
"""Part of the examples that are tried: CI tries fewer, for each of its runs draws others."""


def examples(count: int) -> int:
    """Return how many of so many examples, cases or seeds a test tries."""
    return max(1, math.ceil(count * SHARE))
