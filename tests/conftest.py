"""Options and fixtures of the whole test suite."""

import pytest

from golden_text import Golden


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files instead of comparing"
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare texts with the files in tests/golden: `golden.check("name.txt", text)`."""
    return Golden(update=bool(request.config.getoption("--update-golden")))
