"""What was found out about a model, kept in the user's folder of caches."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from planish.core import cache_folder, content_hash
from planish.graph.installed import versions
from planish.graph.passes import passes
from planish.graph.program import GraphProgram
from planish.graph.relevance.relevant import Relevance
from planish.graph.running import SessionSettings
from planish.sandbox.scratch import write_whole


def known_relevance(program: GraphProgram, settings: SessionSettings) -> Relevance | None:
    """Give what is known of a model, in such a session; None where nothing is."""
    file = _file(program, settings)
    try:
        return Relevance.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there yet, or of another version of planish
        return None


def remembered(
    program: GraphProgram,
    settings: SessionSettings,
    find_out: Callable[[], Relevance],
    *,
    complete: bool = False,
) -> Relevance:
    """Give what is known of a model; find it out and keep it, where nothing is.

    Args:
        program: the model; its content, the libraries' versions and the catalogue decide what is known.
        settings: of the session; so do its level and its provider.
        find_out: is called where nothing is known.
        complete: whether it is called too where there was no time for all.
    """
    known = known_relevance(program, settings)
    if known is not None and (known.is_complete or not complete):
        return known
    found = find_out()
    file = _file(program, settings)
    # Without a folder for it, as on a full disk, the next run finds it out again.
    with suppress(OSError):
        write_whole(file, json.dumps(found.to_json()).encode())
    return found


def _file(program: GraphProgram, settings: SessionSettings) -> Path:
    session = (settings.optimization, settings.provider)
    # Another library, catalogue or session may change other things: what is known of one is not known of the
    # next.
    made_by = content_hash(json.dumps([dict(versions()), list(passes()), session]))[:8]
    return cache_folder("graph") / f"{program.digest}-{made_by}.json"
