"""What is raised where a file of arrays is read that is missing, cut off or damaged."""

import zipfile
import zlib
from tokenize import TokenError

# NumPy lets through what the layers below it say: zipfile of the directory and of what it does not support,
# zlib of what is compressed, tokenize of a header that does not parse; json and NumPy speak of what is in it.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def why(error: Exception) -> str:
    """Say of an error that is one of `DAMAGED` what is wrong, for people."""
    match error:
        case OSError() if error.strerror:
            return error.strerror
        case KeyError():
            return f"it lacks {error}"
        case ValueError() if "pickled" in str(error):  # NumPy's name for whatever it does not know
            return "it is no file of arrays"
        case _:
            return str(error)
