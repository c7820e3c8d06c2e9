"""Options and fixtures of the whole test suite."""

import signal

import pytest
from hypothesis import settings

from golden_text import Golden

# What is started in the background ignores Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is no property of the code.
settings.register_profile("planish", deadline=None)
settings.load_profile("planish")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare texts with the files in tests/golden: `golden.check("name.txt", text)`."""
    return Golden(update=bool(request.config.getoption("--update-golden")))
