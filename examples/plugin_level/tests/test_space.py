"""The space does what every space must."""

from collections.abc import Mapping
from pathlib import Path

from planish.core import Candidate, Space, Step
from planish.testing.spaces import SpaceConformance
from planish_sql.program import SqlProgram
from planish_sql.space import Index, IndexSpace

ORDERS = SqlProgram(Path(__file__).parents[1].joinpath("orders.sql").read_text(encoding="utf-8"))


class TestIndexSpace(SpaceConformance):
    def space(self) -> IndexSpace:
        return IndexSpace(ORDERS)

    def known_steps(self) -> Mapping[str, type[Step]]:
        return {"Index": Index}

    def replay(self, space: Space, candidate: Candidate) -> None:
        assert isinstance(space, IndexSpace)
        space.check(candidate)
        database = ORDERS.database(rows=False)
        database.executescript("".join(step.sql for step in candidate.steps if isinstance(step, Index)))
