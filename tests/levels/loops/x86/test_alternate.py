"""Every second element is loaded without a gather, and nothing beyond the last one is touched."""

import numpy as np
import pytest

from levels.loops.running import GENERATORS, outputs_of
from planish.core import Candidate
from planish.levels.loops.backends import supported_isas
from planish.levels.loops.codegen.x86.isa import IsaName
from planish.levels.loops.codegen.x86.transfers import stride_2_vector
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.reference.inputs import make_inputs
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.steps import Vectorize

SETS: list[IsaName] = supported_isas()


@pytest.mark.skipif(not SETS, reason="this processor has neither AVX-512 nor AVX2 with FMA")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("isa", SETS)
def test_every_second_element_is_loaded_for_any_number_of_them(isa: IsaName, dtype: str) -> None:
    for count in range(2, 36):
        program = parse("O[x] = I[2*x]", {"x": count}, {"I": (2 * count - 1,)}, dtype=dtype)
        schedule, inputs = resolve(program, Candidate((Vectorize("x"),))), make_inputs(program)
        outputs = outputs_of(schedule, GENERATORS[f"x86-{isa}"], inputs)
        np.testing.assert_array_equal(outputs["O"], inputs["I"][::2], err_msg=f"{count} of {dtype}")


@pytest.mark.parametrize(
    ("lanes", "itemsize", "size"),
    [(16, 4, 64), (9, 4, 64), (8, 4, 32), (5, 4, 32), (3, 4, 16), (2, 4, 0), (8, 8, 64), (2, 8, 16)],
)
def test_the_vector_is_more_than_half_full_so_that_both_loads_stay_inside(
    lanes: int, itemsize: int, size: int
) -> None:
    assert stride_2_vector(lanes, itemsize) == size
