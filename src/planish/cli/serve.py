"""`planish serve`: candidates of clients, verified and measured here, over HTTP or MCP."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from planish.cli import options as given
from planish.core.installation import install_command


@given.grouped
def serve(
    program: given.Source,
    *,
    reading: given.ProgramOptions,
    level: given.LevelName = "",
    objective: given.Objective = "",
    space: Annotated[
        str,
        typer.Option(
            "--space",
            metavar="NAME",
            help="Space whose steps clients are shown. Default: the level's first one that is walked step by "
            "step.",
        ),
    ] = "",
    seed: given.Seed = 0,
    cores: given.Cores = 1,
    store: given.StorePlace = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0: any free one.")
    ] = 8081,
    tokens: Annotated[
        Path,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="File with a line `NAME TOKEN` for each client; created, with one client, if it does not "
            "exist.",
        ),
    ] = Path("planish-tokens.txt"),
    compare_seconds: Annotated[
        float,
        typer.Option(
            "--compare-seconds",
            metavar="S",
            min=1,
            help="Seconds that a comparison may take; three times as long where it is repeated.",
        ),
    ] = 30.0,
    stdio: Annotated[
        bool,
        typer.Option(
            "--stdio",
            help="Speak MCP over standard input and output with the client that started it, not HTTP.",
        ),
    ] = False,
    quota: Annotated[
        int | None,
        typer.Option(
            "--quota", metavar="N", min=1, help="Candidates that each client may have measured. Default: any."
        ),
    ] = None,
) -> None:
    """Measure what clients submit, over HTTP and MCP, until Ctrl-C.

    A client, such as an agent, submits candidates as lists of steps. Each is verified and timed as in a
    search, and becomes a trial of a run, which the pages of the dashboard show at the same address. It needs
    the extra `serve`: `pip install '.[serve]'`.

        planish serve "C[m,n] += A[m,k] * B[k,n]" --size m=192,n=192,k=192 --space marked-steps
    """
    from planish.cli.output import say
    from planish.cli.request import level_options, names
    from planish.core import TargetError
    from planish.core.registry import load_program
    from planish.tuning.settings import Settings

    try:
        from planish.serve.server import read_tokens, serve_streams, serve_tools

        if stdio:
            import_module("planish.serve.mcp")
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("starlette", "uvicorn", "anyio", "mcp"):
            raise
        is_missing = isinstance(error, ModuleNotFoundError)
        what = f"the service needs {package}, which is {'missing' if is_missing else 'too old'} here"
        raise TargetError(what, f"Install it: {install_command('serve')}.") from error

    def show(line: str) -> None:
        import sys

        say(line)
        sys.stdout.flush()

    settings = Settings(objectives=names(objective), space=space, seed=seed, cores=cores)
    found, read = load_program(program, level, level_options(reading))
    if stdio:
        serve_streams(found, read, settings, store, quota, compare_seconds)
        return
    known = read_tokens(tokens)
    show(f"Tokens of {', '.join(known)}: {tokens}")
    serve_tools(found, read, settings, store, host, port, known, quota, compare_seconds, show)
