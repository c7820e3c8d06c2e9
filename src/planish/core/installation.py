"""Commands that install optional parts of planish, as this planish is installed."""

from __future__ import annotations

import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from urllib.parse import unquote, urlsplit

_NAME = "planish"


def install_command(extra: str) -> str:
    """Return the command that installs an extra of planish: `pip install -e '/path/to/checkout[serve]'`.

    It names the folder or repository that planish was installed from, if there is one: pip would look for the
    bare name in the package index.

    Args:
        extra: one of pyproject.toml.
    """
    try:
        recorded = distribution(_NAME).read_text("direct_url.json")  # PEP 610
    except PackageNotFoundError:
        recorded = None
    origin = json.loads(recorded) if recorded else {}
    url, version = origin.get("url", ""), origin.get("vcs_info")
    named = f"{_NAME}[{extra}]"
    if version:
        named = f"{named} @ {version['vcs']}+{url}"
    elif url.startswith("file:") and "dir_info" in origin:
        named = f"{unquote(urlsplit(url).path)}[{extra}]"
    elif url:
        named = f"{named} @ {url}"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}{shlex.quote(named)}"
