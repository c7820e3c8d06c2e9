"""The page of what `planish cc` compiled, by file and function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planish.cc.object_cache import open_cache
from planish.cc.reporting import Compiled, builds, share

_FILES_MOST = 1000


def has_builds() -> bool:
    """Return whether `planish cc` has compiled something here."""
    return (Path(open_cache().folder) / "builds").is_dir()


def builds_contents(folder: str) -> Mapping[str, Any]:
    """Return what the page shows.

    Args:
        folder: only objects in or below it; empty for all.
    """
    done = builds(open_cache().folder, Path(folder or "/"))
    sizes = [one.text for one in done if one.text]
    before, after = (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0)
    return {
        "folder": folder,
        "folders": sorted({str(Path(one.output).parent) for one in done})[:_FILES_MOST],
        "rows": [_row(one) for one in done[:_FILES_MOST]],
        "count": len(done),
        "before": before,
        "after": after,
        "share": share(before, after),
    }


def _row(one: Compiled) -> Mapping[str, Any]:
    before, after = one.text or (0, 0)
    return {
        "one": one,
        "saved": share(before, after) if one.text else "",
        "functions": sorted(one.functions, key=lambda gain: gain.after - gain.before),
        "faster": _faster(one),
    }


def _faster(one: Compiled) -> Sequence[str]:
    return [
        f"{value:.3f} times as fast ({low:.3f} to {high:.3f}) by {each.source}"
        for each in one.faster or ()
        for value, low, high in [each.times]
    ]
