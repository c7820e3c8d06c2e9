"""Which errors of the system concern one file, and which the whole disk."""

import errno

_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def is_no_room(error: OSError) -> bool:
    """Tell whether nothing more can be written, whatever it is."""
    return error.errno in _NO_ROOM
