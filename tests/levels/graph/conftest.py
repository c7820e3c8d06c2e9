"""The tests of the level `graph` need its libraries."""

import os
from importlib.util import find_spec

import pytest

# Where the checks run, what is missing is a failure.
if find_spec("onnxruntime") is None and os.environ.get("CI") != "true":
    collect_ignore_glob = ["*"]


@pytest.fixture(autouse=True)
def own_caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing that is kept between runs reach a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
