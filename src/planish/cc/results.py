"""Store of the searches of `planish cc`: a database in the folder of its cache."""

from __future__ import annotations

from pathlib import Path

from planish.cc.object_cache import ObjectCache
from planish.core import StoreError
from planish.store import Store, open_store

_NAME = "store.db"


def open_results(cache: ObjectCache, scratch: Path) -> Store:
    """Open the store of a cache; one in a scratch folder where the cache cannot be written.

    Args:
        cache: whose folder has it; an error is noted there.
        scratch: a folder that ends with the compilation.
    """
    try:
        cache.make_folder(cache.folder)
        return open_store(Path(cache.folder) / _NAME)
    except (OSError, StoreError) as error:
        cache.note(f"cannot be written: {error}")
        return open_store(scratch / _NAME)
