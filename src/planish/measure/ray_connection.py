"""Connection of this process to a Ray cluster."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from planish.core import PlanishError
from planish.core.installation import install_command

RESOURCE = "measure"
"""The custom resource of a host that measures: `ray start --resources='{"measure": 1}'`."""
_CONNECT_S = 10.0


def connect(address: str) -> bool:
    """Connect this process to Ray; return whether the connection, or the Ray, ends with the cluster.

    Raises:
        PlanishError: Ray is not installed, or does not answer.
    """
    # Ray reports its use to its makers unless this is set; a cluster's own setting is not changed.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise PlanishError("Ray is not installed", f"Install it: {install_command('ray')}.") from error
    if ray.is_initialized():
        return False
    address = address or os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise PlanishError(
            f"'{address}' is not the address of a Ray node",
            "Write HOST:PORT, and run this command on a machine of the cluster.",
        )
    options: dict[str, Any] = {"address": address or "local"}
    if not address:
        options |= {"resources": {RESOURCE: 1}, "include_dashboard": False}
        options["_system_config"] = {"worker_niceness": 0}
    elif address != "auto":
        _check_address(address)
    try:
        with _quiet():
            ray.init(**options, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except Exception as error:
        end_failed_node(error)
        what = f"cannot connect to Ray at {address}" if address else "cannot start Ray on this machine"
        raise PlanishError(
            f"{what}: {_in_a_line(error)}", "Run 'ray start' on this machine, too." if address else ""
        ) from error
    except BaseException as error:
        end_failed_node(error)
        ray.shutdown()
        if isinstance(error, SystemExit):  # Ray's own handler, which was there for a moment
            signal.raise_signal(signal.SIGTERM)
        raise
    return True


def end_failed_node(error: BaseException) -> None:
    """End the processes of a node whose start raised an error, which Ray itself leaves to this process's end.

    Args:
        error: caught where the node was started.
    """
    from ray._private.node import Node  # pyright: ignore[reportMissingImports]

    for frame, _ in traceback.walk_tb(error.__traceback__):
        # The half-made node is nowhere else: its constructor did not return.
        node: Any = frame.f_locals.get("self")
        if isinstance(node, Node):
            node.kill_all_processes(check_alive=False, allow_graceful=True, wait=True)


def disconnect() -> None:
    """End the connection, and the Ray that this process started."""
    import ray  # pyright: ignore[reportMissingImports]

    with _quiet():
        ray.shutdown()


def start_actor(kind: type, node: str, *arguments: Any, **options: Any) -> Any:
    """Start an actor on a node, and return its handle; it is not started again by Ray.

    Args:
        kind: its class.
        node: the id of the node.
        arguments: of the class.
        options: of Ray, such as `resources`.
    """
    import ray  # pyright: ignore[reportMissingImports]
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # pyright: ignore[reportMissingImports]

    made: Any = ray.remote(kind)
    return made.options(
        num_cpus=0,
        enable_task_events=False,  # a tenth of what a message costs here
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        **options,
    ).remote(*arguments)


def last_line(error: BaseException) -> str:
    """Return what an error of Ray says, in one line."""
    from ray.exceptions import RayActorError, RayTaskError  # pyright: ignore[reportMissingImports]

    if isinstance(error, RayTaskError):
        cause = getattr(error, "cause", None)
        return f"{type(cause).__name__}: {cause}" if cause else str(error).strip().splitlines()[-1]
    if isinstance(error, RayActorError):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return next((line for line in reversed(lines) if "Error" in line), "its process or node died")
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


_PLACE = re.compile(r"\s*This process on .* was started with:")


def _in_a_line(error: Exception) -> str:
    """Return what Ray says of a connection; of other versions, those of the cluster and of this process."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if "mismatch" not in lines[0].lower():
        return lines[0]
    return _PLACE.sub("; this process has", " ".join(lines))


def _check_address(address: str) -> None:
    """Raise PlanishError unless something listens at an address; Ray itself waits for a minute and more."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise PlanishError(f"'{address}' is not the address of a Ray node", "Write HOST:PORT.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise PlanishError(
            f"no Ray cluster answers at {address}: {error}",
            "Start it with 'ray start --head', or see address= and RAY_ADDRESS.",
        ) from error


@contextmanager
def _quiet() -> Generator[None]:
    """Keep this process's handlers of signals, where the block sets others, and Ray's messages to itself."""
    ray_log = logging.getLogger("ray")
    level = ray_log.level
    ray_log.setLevel(logging.ERROR)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        ray_log.setLevel(level)
        for number, handler in before.items():
            with suppress(ValueError):  # not in the main thread, where none was set either
                signal.signal(number, handler)
