"""Disks that are too small, and folders that cannot be written, as the system makes them."""

import os
import resource
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planish.core import StoreError


def mount(*arguments: str | Path) -> None:
    """Call mount(8), or skip the test where this user or system does not let us."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mount is not permitted here: {done.stderr.strip()}")


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Generator[None]:
    """Make the folder a disk of this size."""
    folder.mkdir(exist_ok=True)
    mount("-t", "tmpfs", "-o", f"size={kilobytes}k,mode=0777", "tmpfs", folder)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(add: Callable[[int], None]) -> tuple[int, StoreError]:
    """Add trials until it fails; return the number of those added, and the error."""
    for index in range(10_000):
        try:
            add(index)
        except StoreError as error:
            return index, error
    raise AssertionError("the disk was never full")


def grow(folder: Path) -> None:
    """Make a small disk large."""
    mount("-o", "remount,size=64m", folder)


@contextmanager
def small_files(kilobytes: int) -> Generator[None]:
    """Let no file of this process grow beyond this size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def write_protected(folder: Path) -> Generator[None]:
    """Make a folder that no user can write to: a read-only mount for root, permissions for others."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    mount("--bind", folder, folder)
    try:
        mount("-o", "remount,bind,ro", folder)
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
