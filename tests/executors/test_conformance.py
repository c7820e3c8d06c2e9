"""Every executor passes the suite that plug-ins are held to."""

from pathlib import Path

import pytest

from planish.core import EvaluatorSpec, Executor
from planish.executors import InlineExecutor, LocalExecutor
from planish.isolation import Limits
from planish.testing.executors import ExecutorConformance

LIMITS = Limits(build=0.5, worker=10.0, memory_bytes=512 << 20)


class TestLocalExecutor(ExecutorConformance):
    @pytest.fixture(autouse=True)
    def _settings(self, tmp_path: Path) -> None:
        self.lock = tmp_path / "lock"

    def executor(self, factory: EvaluatorSpec) -> Executor:
        return LocalExecutor(factory, workers=2, limits=LIMITS, lock=self.lock)


class TestInlineExecutor(ExecutorConformance):
    isolates = False

    def executor(self, factory: EvaluatorSpec) -> Executor:
        return InlineExecutor(factory())
