"""Both databases pass the suite that plug-ins are held to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planish.core import Candidate
from planish.store import ResultRow, Store, open_store
from planish.testing.stores import StoreConformance


class _Conformance(StoreConformance):
    place: str | Path

    def open(self, *, read_only: bool = False) -> Store:
        return open_store(self.place, read_only=read_only)

    def result_row(self, candidate: Candidate, ratio: float, data: Mapping[str, Any]) -> ResultRow:
        return ResultRow(candidate, ratio, data)


class TestSQLite(_Conformance):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.place = tmp_path / "planish.db"


class TestPostgreSQL(_Conformance):
    @pytest.fixture(autouse=True)
    def _database(self, postgres: str) -> None:
        self.place = postgres
