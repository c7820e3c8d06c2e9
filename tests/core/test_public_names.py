"""Public names of planish.core, whose modules are loaded when a name of theirs is needed."""

import subprocess
import sys

import pytest

from planish import core


def test_every_public_name_is_found_and_no_other() -> None:
    for name in core.__all__:
        assert getattr(core, name) is not None
    assert set(core.__all__) <= {*dir(core)}
    with pytest.raises(AttributeError, match="no attribute 'Candidates'"):
        _ = core.Candidates  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def test_no_module_is_loaded_before_its_names_are_needed() -> None:
    program = "import sys, planish.core; print([m for m in sys.modules if m.startswith('planish.core.')])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"
