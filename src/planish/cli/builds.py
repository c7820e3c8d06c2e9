"""What `planish cc` saved in a build, for `planish report`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from planish.cli.options import Form


def show_build(folder: Path, form: Form) -> None:
    """Show what was compiled into a folder.

    Args:
        folder: in or below which the objects are.
        form: "text" or "json".

    Raises:
        PlanishError: nothing there was compiled by `planish cc`, as far as the cache knows.
    """
    from planish.cc.object_cache import open_cache
    from planish.cc.reporting import builds, lines
    from planish.cli.output import document, say
    from planish.core import PlanishError

    cache = open_cache()
    done = builds(cache, folder.resolve())
    if not done:
        what = f"nothing in {folder} was compiled by planish cc, says the cache {cache.folder}"
        raise PlanishError(what, 'Build with CC="planish cc" and -Oz, and name the folder of the objects.')
    if form == "json":
        document({"build": str(folder), "sources": [asdict(one) for one in done]})
        return
    for line in lines(done, folder.resolve()):
        say(line)
