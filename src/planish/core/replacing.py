"""Files that are written beside the old ones, and take their places."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Give the path to write to within the block; what is there then replaces the file.

    Where the block fails, as on a full disk, the old file is as it was.

    Raises:
        OSError: it cannot be replaced.
    """
    part = path.with_name(path.name + ".part")
    yield part
    part.replace(path)
