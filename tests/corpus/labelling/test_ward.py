"""Children that die cost one evaluation, whatever they die of."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from planish.corpus.labelling import Ward, forked


def _abort() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _exit() -> None:
    os._exit(1)


def _compute_for_ever() -> None:
    while True:
        pass


def _sleep() -> None:
    time.sleep(60)


@pytest.mark.parametrize("die", [_abort, _exit, _compute_for_ever, _sleep])
def test_what_ends_a_child_is_refused_and_the_rest_is_done(die: Callable[[], None]) -> None:
    def work(item: str, ward: Ward) -> list[bool]:
        allowed: list[bool] = []
        for evaluation in range(3):
            allowed.append(ward.enter(f"{item}:{evaluation}"))
            if allowed[-1] and (item, evaluation) in {("b", 1), ("e", 2)}:
                die()
        return allowed

    done = {one.item: one for one in forked("abcdefg", work, 2, at_once=3, seconds=0.04)}

    assert {item: one.answer for item, one in done.items()} == {
        item: [True, item != "b", item != "e"] for item in "abcdefg"
    }
    assert {item: one.refused for item, one in done.items() if one.refused} == {"b": ("b:1",), "e": ("e:2",)}


def test_an_item_that_always_kills_is_given_up() -> None:
    def work(item: int, ward: Ward) -> int:
        place = 0
        while True:
            place += 1
            if ward.enter(f"{item}, {place}") and item == 2:
                _exit()
            if item != 2:
                return item

    done = {one.item: one.answer for one in forked(range(5), work, 1)}

    assert done == {0: 0, 1: 1, 2: None, 3: 3, 4: 4}


def test_a_death_between_evaluations_gives_the_item_up_at_once() -> None:
    def work(item: int, _: Ward) -> int:
        if item == 1:
            _exit()
        return item

    done = {one.item: one.answer for one in forked(range(3), work, 1)}

    assert done == {0: 0, 1: None, 2: 2}


def test_an_exception_of_the_work_is_raised_here() -> None:
    def work(item: int, _: Ward) -> int:
        return 1 // item

    with pytest.raises(ZeroDivisionError):
        list(forked([1, 0], work, 1))


def test_no_child_outlives_a_caller_that_stops_listening(tmp_path: Path) -> None:
    def work(item: int, _: Ward) -> int:
        (tmp_path / str(os.getpid())).touch()
        if item:
            time.sleep(60)
        return item

    answers = forked(range(4), work, 2, at_once=1, seconds=60)
    assert next(answers).answer == 0
    answers.close()

    children = [int(file.name) for file in tmp_path.iterdir()]
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)
