"""Our own back ends do what every back end must do."""

import pytest

from planish.core import PlanishError
from planish.levels.loops.backends import PREFERRED, Backend, backend_named, backend_names
from planish.levels.loops.testing.backends import BackendConformance


class TestWide(BackendConformance):
    def backend(self) -> Backend:
        return backend_named("x86-avx512")


class TestNarrow(BackendConformance):
    def backend(self) -> Backend:
        return backend_named("x86-avx2")


class TestPortable(BackendConformance):
    def backend(self) -> Backend:
        return backend_named("portable")


def test_ours_come_first() -> None:
    assert backend_names()[: len(PREFERRED)] == PREFERRED


def test_an_unknown_back_end_is_reported() -> None:
    with pytest.raises(PlanishError, match="has no back end 'portible'"):
        backend_named("portible")
