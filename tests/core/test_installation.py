"""The command that installs an extra names what planish was installed from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from planish.core.installation import install_command


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'planish[serve]'"),
        ({"url": "file:///a%20b/c", "dir_info": {}}, "pip install '/a b/c[serve]'"),
        ({"url": "file:///a/c", "dir_info": {"editable": True}}, "pip install -e '/a/c[serve]'"),
        ({"url": "https://h/p.whl", "archive_info": {}}, "pip install 'planish[serve] @ https://h/p.whl'"),
        (
            {"url": "https://h/p.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            "pip install 'planish[serve] @ git+https://h/p.git'",
        ),
    ],
)
def test_the_command_fits_the_installation(
    origin: Mapping[str, Any] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "planish-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planish\nVersion: 0\n")
    if origin:
        (info / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.syspath_prepend(tmp_path)
    assert install_command("serve") == command
