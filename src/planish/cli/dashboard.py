"""`planish dashboard`: the runs of a store in a browser, live."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from planish.cli import options as given
from planish.core.installation import install_command


def dashboard(
    store: given.StorePlace = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on. For any but 127.0.0.1, pages need the token in the printed URL.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0: any free one.")
    ] = 8080,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Show the runs of a store in a browser, live, until Ctrl-C.

    The store is only read. It needs the extra `serve`: `pip install '.[serve]'`.

        planish dashboard --store runs.db
    """
    from planish.cli.output import say
    from planish.core import TargetError

    try:
        from planish.dashboard.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        what = f"the dashboard needs {error.name}, which is missing here"
        raise TargetError(what, f"Install it: {install_command('serve')}.") from error

    def show(line: str) -> None:
        say(line)
        sys.stdout.flush()

    serve(store, host, port, browse=not no_browser, say=show)
    os._exit(0)  # the interpreter's own end would wait for charts that are being drawn
