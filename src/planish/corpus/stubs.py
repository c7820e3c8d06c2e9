"""Headers that are made up where a package's build would have generated them."""

import re
from functools import cache
from importlib.resources import files

_PLACEHOLDER = re.compile(r"@\w+@")


def made_up(template: str) -> str:
    """Write a header from the text of its NAME.in; what that leaves open becomes 1."""
    return _PLACEHOLDER.sub("1", template)


@cache
def configuration() -> str:
    """Give a config.h that tells what a Linux system with the GNU library has."""
    return (files("planish.corpus") / "config.h").read_text()
