"""Recording of random programs, and the cost model that is fitted to them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

import pytest

from planish.levels.loops.backends import this_machine
from planish.levels.loops.level import LoopsLevel
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.workloads import matmul
from planish.models import model_files
from planish.models.model_files import load_model
from planish.models.trees import can_grow
from planish.store import open_store
from planish.train.background import LOOPS, Fitted, LearningPlan, improve, plan_of
from planish.train.cost_models import NAME, SHIPPED, random_programs
from planish.tuning.batch import RecordedProgram, record_programs
from planish.tuning.transfer import KnownTask, known_tasks

LEVEL = LoopsLevel()
SMALL = [matmul(8, 8 + 4 * n, 12) for n in range(12)]


def test_programs_are_drawn_by_a_seed() -> None:
    one, same = ([each.text for each in islice(random_programs(1), 6)] for _ in range(2))
    assert one == same
    assert not set(one) & {each.text for each in islice(random_programs(SHIPPED), 6)}


def test_recording_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    with open_store(tmp_path / "store.db") as store:
        first = [*islice(record_programs(LEVEL, SMALL, LOOPS, 8, store), 2)]
        assert [(one.program, one.trials, one.programs) for one in first] == [
            (SMALL[0], 8, 1),
            (SMALL[1], 8, 2),
        ]
        again = [*record_programs(LEVEL, SMALL[:3], LOOPS, 8, store)]
        assert [(one.program, one.programs) for one in again] == [(SMALL[2], 3)]
        assert [*record_programs(LEVEL, SMALL, LOOPS, 8, store, seconds=1e-9)] == []
        assert len(store.runs()) == 3
        spaces = [task.space(TemplateSpace) for task in known_tasks(store, LEVEL)]
    # Else what is learnt has features by other caches than those of the searches that ask it.
    assert [space and space.facts.machine for space in spaces] == [this_machine(1).machine] * 3


def test_programs_of_other_levels_and_versions_are_not_counted(tmp_path: Path) -> None:
    class Older(LoopsLevel):
        version = "0"

    with open_store(tmp_path / "store.db") as store:
        assert len([*record_programs(Older(), SMALL[:2], LOOPS, 8, store)]) == 2
        assert [one.programs for one in record_programs(LEVEL, SMALL[:2], LOOPS, 8, store)] == [1, 2]


def test_what_came_after_the_last_fit_is_learnt_from_at_the_end() -> None:
    known = cast("list[KnownTask]", [None] * 3)
    programs = [RecordedProgram(SMALL[number], 8, number + 1) for number in range(3)]

    def fits(count: int, first: int, recorded: int = 3) -> list[tuple[int | None, int | None]]:
        plan = LearningPlan(LOOPS, 8, first, 2, lambda tasks: Fitted("it", len(tasks), None, True))
        found = improve(programs[:recorded], lambda: known[:count], plan)
        return [(one and one.programs, fitted and fitted.programs) for one, fitted in found]

    assert fits(3, 2) == [(1, None), (2, 3), (3, None), (None, 3)]
    assert fits(3, 3) == [(1, None), (2, None), (3, 3)]
    assert fits(3, 2, recorded=0) == [(None, 3)]
    assert fits(3, 4) == [(1, None), (2, None), (3, None)]


@pytest.mark.slow
@pytest.mark.skipif(not can_grow(), reason="XGBoost is not installed")
def test_a_model_is_fitted_after_every_few_programs_and_judged_on_those_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = model_files.models_folder() / f"{NAME}.npz"
    with open_store(tmp_path / "store.db") as store:
        recorded = record_programs(LEVEL, SMALL, LOOPS, 10, store)
        plan = replace(plan_of("loops"), first=10, every=2)
        found = [*improve(recorded, partial(known_tasks, store, LEVEL), plan)]
        assert [one and one.programs for one, model in found if model is not None] == [10, 12]
        model = load_model(path)
    assert (model.level, model.measured, model.programs) == ("loops", "time_s", 12)
    assert model.held_out is not None
    assert model.held_out.rival == "planish's built-in cost model for loops"
    assert model.held_out.programs < 12
