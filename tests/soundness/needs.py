"""What a machine may lack."""

import os

import pytest


def lacking(reason: str) -> None:
    """Skip the test; where everything should be installed, fail it."""
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
