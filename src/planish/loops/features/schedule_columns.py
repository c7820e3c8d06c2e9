"""The columns of features that are read from schedules alone.

They are AutoTVM's context features Z of the main nest (section 3.1 and appendix of its paper), and relation
features R (section 4): what is touched and moved by the outermost loops whose data a cache still holds.
Counts are given as log2(1 + x), and what is a share of the nest's work as log2(x).
"""

from planish.core import FeatureSchema
from planish.loops.features.nest_table import LOOPS

ROLES = ("result", "loaded", "other")
"""What is written; of what is read first what the innermost loop moves, for vectors of it are loaded."""
HOLDERS = ("registers", "nearest cache", "second cache", "third cache")
OF_NEST = (
    "work",  # iterations of the innermost loop
    "elements of the result",
    "elements of the loaded",
    "elements of the other",
    "lanes",  # of a vector; no logarithm
    "loops",  # no logarithm
    "threads",  # 1 where they share the outermost loop
    "vector reduced",  # 1 where the innermost loop reduces
    "vector",  # iterations of the innermost loop
    "results in registers",  # elements that the innermost loops write around which the first loop reduces
    "registers of results",  # vectors of these
    "idle lanes",  # share of these vectors' lanes; no logarithm
    "loads",  # of vectors and single elements, for each operation on vectors; no logarithm
    "steps",  # iterations of the first loop that reduces
    "other nests",  # no logarithm
    "own loops",  # of the other nests; no logarithm
    "own copies",  # packed tiles of the other nests; no logarithm
    "staged",  # tensors that may not share loops; no logarithm
)
OF_SLOT = (
    "packed",  # 1 where it is copied
    "ahead",  # 1 where it is copied before the first call
    "tile",  # elements of its copy
    "copied",  # share of the work: elements that are copied
)
OF_HOLDER = (
    "iterations inside",  # of the outermost loop whose data it holds, all that is inside together
    *[f"moved of the {role}" for role in ROLES],  # bytes into it, as a share of the work
)
OF_LOOP = (
    "trips",  # iterations
    "tail",  # what is left for a shorter iteration, as a share; no logarithm
    "inside",  # iterations of the innermost loop in one execution: the bottom-up product
    "entries",  # how often it is executed: the top-down product
    "reduces",  # 1 where the result stays where it is
    "unrolled",
    "bytes",  # touched in one execution
    *[f"{what} of the {role}" for role in ROLES for what in ("touched", "run", "stride", "reuse")],
)
SCHEMA = FeatureSchema(
    "loops/schedule",
    1,
    (
        *OF_NEST,
        *[f"{name} of the {role}" for role in ROLES for name in OF_SLOT],
        *[f"{holder}: {name}" for holder in HOLDERS for name in OF_HOLDER],
        *[f"{name}, loop {i}" for i in range(LOOPS) for name in OF_LOOP],
    ),
)
"""Loop 0 is the innermost."""
