from hypothesis import given, settings

from planish.loops.parse import parse_canonical
from planish.loops.program import Program
from planish.testing.programs import programs


@settings(max_examples=300, deadline=None)
@given(programs())
def test_canonical_text_reads_back(program: Program) -> None:
    assert parse_canonical(program.text) == program
