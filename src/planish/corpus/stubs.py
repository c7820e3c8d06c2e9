"""Headers that are made up where a package's build would have generated them."""

import re
from functools import cache
from importlib.resources import files

_LEFT_OPEN = re.compile(r"@\w+@|\$\{\w+\}")
_CMAKE_NUMBER = re.compile(r"^([ \t]*#[ \t]*)cmakedefine01([ \t]+\w+).*$", re.MULTILINE)
_CMAKE = re.compile(r"^([ \t]*#[ \t]*)cmakedefine\b", re.MULTILINE)


def made_up(template: str) -> str:
    """Write a header from the text of its NAME.in; what that leaves open becomes 1, and is defined."""
    text = _CMAKE_NUMBER.sub(r"\1define\2 1", template)
    return _LEFT_OPEN.sub("1", _CMAKE.sub(r"\1define", text))


@cache
def configuration() -> str:
    """Give a config.h that tells what a Linux system with the GNU library has."""
    return (files("planish.corpus") / "config.h").read_text()
