"""What is raised where a file of arrays is read that is missing, cut off or damaged."""

import zipfile
import zlib

# NumPy lets through what the layers below it say: zipfile of the directory and of what it does not support,
# zlib of what is compressed; json and NumPy itself speak of what is in it.
DAMAGED = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)
