"""Data sets of labeled images: IDX, CIFAR-10, folders and tars of images, npz files, and stand-ins.

- IDX files, as of MNIST: `train-images-idx3-ubyte`, `t10k-labels-idx1-ubyte`, also compressed.
- CIFAR-10's batches: pickles of Python (`data_batch_1`) or records (`data_batch_1.bin`).
- Images by class, `train/cat/1.jpg`, in folders or in `train.tar`; Pillow decodes those that are needed.
- npz files: arrays `images` and `labels`, or `x_train`, `y_train`, `x_test`, `y_test` as Keras has them.
- Without any of these, scikit-learn's digits or made examples stand in.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import pickle
import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError, unresolved_file
from planish.core.files import DAMAGED, check_regular, read_regular, why

Group = Literal["train", "test"]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Examples:
    """The examples of one group.

    Args:
        images: returns those at some positions, in that order: N x height x width (x channels), or flat.
            Bytes are 0 to 255; floats are taken as they are.
    """

    labels: Indices
    images: Callable[[Indices], NDArray[Any]]


def examples_of(images: NDArray[Any], labels: NDArray[Any], where: str) -> Examples:
    """Make examples of arrays in memory.

    Raises:
        ProgramError: there are more images than labels, or fewer; a label is not a whole number from 0.
    """
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(images) != len(labels):
        what = f"{where} has {len(images)} images and labels of shape {list(labels.shape)}"
        raise ProgramError(what, "Give one label for each image.")
    if (
        labels.dtype.kind not in "biuf"
        or not (np.isfinite(labels) & (np.floor(labels) == labels) & (labels >= 0)).all()
    ):
        raise ProgramError(f"{where} has labels that are not whole numbers from 0", "Number the classes.")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise ProgramError(f"the images of {where} are {images.dtype}", "Give bytes or floats.")
    return Examples(labels.astype(np.int64), lambda positions: images[positions])


_PREFIXES = {"train": ("train",), "test": ("t10k", "test")}
_BYTES = 8  # the element type in the third byte of the magic number


@contextmanager
def _reading(path: Path) -> Generator[None]:
    """Raise ProgramError where a file cannot be read."""
    try:
        yield
    except (*DAMAGED, tarfile.TarError, pickle.UnpicklingError) as error:
        raise ProgramError(f"cannot read '{path}': {why(error)}", "Fetch it again.") from error


def open_idx(folder: Path, group: Group) -> Examples | None:
    """Read a group; None where the folder has no such files."""

    def find(what: str) -> Path | None:
        patterns = (f"{prefix}*{what}*idx?*" for prefix in _PREFIXES[group])
        return next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)

    images, labels = find("images"), find("labels")
    if images is None or labels is None:
        return None
    return examples_of(read_idx(images), read_idx(labels), f"'{folder}' ({group})")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes; raises ProgramError where the file cannot be read, or is none."""
    with _reading(path):
        data = read_regular(path)
        if path.suffix == ".gz":
            data = gzip.decompress(data)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != _BYTES or len(data) < 4 + 4 * data[3]:
        raise ProgramError(f"'{path}' is not an IDX file of bytes", "Fetch it again.")
    shape = np.frombuffer(data, ">u4", data[3], 4).tolist()
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * data[3])
    if len(values) != math.prod(shape):
        raise ProgramError(f"'{path}' has {len(values)} bytes for a shape of {shape}", "Fetch it again.")
    return values.reshape(shape)


_PATTERNS = {"train": "data_batch_?", "test": "test_batch"}
_PIXELS = 3 * 32 * 32


def open_cifar(folder: Path, group: Group) -> Examples | None:
    """Read a group; None where the folder, or one inside it as it is unpacked, has no such files."""
    for root in (folder, *sorted(folder.glob("cifar-10-batches-*"))):
        pattern = _PATTERNS[group]
        pickles, records = (sorted(root.glob(pattern + suffix)) for suffix in ("", ".bin"))
        if pickles or records:
            read = [_of_pickle(path) for path in pickles] or [_of_records(path) for path in records]
            images, labels = (np.concatenate(arrays) for arrays in zip(*read, strict=True))
            shaped = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
            return examples_of(shaped, labels, f"'{root}' ({group})")
    return None


def _of_records(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with _reading(path):
        data = np.frombuffer(read_regular(path), np.uint8)
    if len(data) % (1 + _PIXELS):
        raise ProgramError(f"'{path}' has no whole number of records", "Fetch it again.")
    records = data.reshape(-1, 1 + _PIXELS)
    return records[:, 1:], records[:, 0]


def _of_pickle(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    with _reading(path):
        batch = _Arrays(io.BytesIO(read_regular(path)), encoding="bytes").load()
        images, labels = np.asarray(batch[b"data"], np.uint8), np.asarray(batch[b"labels"])
        return images.reshape(-1, _PIXELS), labels


class _Arrays(pickle.Unpickler):
    """Reads arrays and what Python has built in, and calls nothing else: a pickle may run any code."""

    def find_class(self, module: str, name: str, /) -> Any:
        from numpy._core import multiarray

        known = {
            ("multiarray", "_reconstruct"): getattr(multiarray, "_reconstruct"),  # noqa: B009
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("_codecs", "encode"): _encode,
        }
        found = known.get((module.rpartition(".")[2], name))
        if found is None:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return found


def _encode(text: str, _encoding: str) -> bytes:
    return text.encode("latin-1")


SUFFIXES = (".jpg", ".jpeg", ".png")


def open_images(folder: Path, group: Group) -> Examples | None:
    """List the images of a group; None where there are none. The class is the name of the folder above."""
    if (folder / group).is_dir():
        found = sorted(path for path in (folder / group).glob("*/*") if path.suffix.lower() in SUFFIXES)
        names = [f"{path.parent.name}/{path.name}" for path in found]

        def read(positions: Sequence[int]) -> Iterator[bytes]:
            return (read_regular(found[position]) for position in positions)

        return _examples(names, read, f"'{folder / group}'")
    tars = (folder / f"{group}{suffix}" for suffix in (".tar", ".tar.gz", ".tgz"))
    return next((_of_tar(path) for path in tars if path.is_file()), None)


def _of_tar(path: Path) -> Examples:
    with _reading(path), tarfile.open(path) as content:
        members = [m for m in content.getmembers() if m.isfile() and m.name.lower().endswith(SUFFIXES)]
    members.sort(key=lambda member: member.name)

    def read(positions: Sequence[int]) -> Iterator[bytes]:
        with tarfile.open(path) as content:
            for position in positions:
                file = content.extractfile(members[position])
                assert file is not None
                yield file.read()

    return _examples([member.name for member in members], read, f"'{path}'")


def _examples(names: Sequence[str], read: Callable[[Sequence[int]], Iterator[bytes]], where: str) -> Examples:
    if not names:
        raise ProgramError(f"{where} has no images in folders", f"They end with {', '.join(SUFFIXES)}.")
    classes = [PurePosixPath(name).parent.name for name in names]
    numbers = {name: number for number, name in enumerate(sorted(set(classes)))}
    labels = np.array([numbers[name] for name in classes], np.int64)

    def images(indices: Indices) -> NDArray[Any]:
        positions: list[int] = indices.tolist()
        contents = zip(read(positions), positions, strict=True)
        decoded = [_decoded(data, names[position], where) for data, position in contents]
        shapes = {image.shape for image in decoded}
        if len(shapes) > 1:
            raise ProgramError(f"the images of {where} have several sizes: {sorted(shapes)}", "Resize them.")
        return np.stack(decoded)

    return Examples(labels, images)


def _decoded(data: bytes, name: str, where: str) -> NDArray[np.uint8]:
    try:
        from PIL import Image
    except ImportError as error:
        raise TargetError("images need Pillow", "Install it with: pip install pillow") from error
    try:
        with Image.open(io.BytesIO(data)) as image:
            return np.asarray(image if image.mode == "L" else image.convert("RGB"), np.uint8)
    except OSError as error:
        raise ProgramError(f"'{name}' of {where} is not a readable image: {error}", "Remove it.") from error


_NAMES = {
    "train": (("images", "labels"), ("x_train", "y_train")),
    "test": (("test_images", "test_labels"), ("x_test", "y_test")),
}


def open_npz(path: Path, group: Group) -> Examples | None:
    """Read a group from a file, or from the first file of a folder; None where it is not there."""
    file = next(iter(sorted(path.glob("*.npz"))), None) if path.is_dir() else path
    if file is None or file.suffix != ".npz":
        return None
    try:
        check_regular(file)
        with np.load(file, allow_pickle=False) as found:
            for images, labels in _NAMES[group]:
                if images in found and labels in found:
                    return examples_of(found[images], found[labels], f"'{file}' ({group})")
    except DAMAGED as error:
        raise ProgramError(f"cannot read '{file}': {why(error)}", "Write it with numpy.savez.") from error
    if group == "train":
        raise ProgramError(f"'{file}' lacks the arrays 'images' and 'labels'", "Write it with numpy.savez.")
    return None


_KNOWN = "IDX files, CIFAR-10 batches, train and test folders or tars of images, or .npz files"


def open_data(path: Path, group: Group) -> Examples | None:
    """Open one group of a data set; None where it has no test group.

    Args:
        group: which; no file of the other is opened, unless one file holds both.

    Raises:
        ProgramError: nothing known is there, or a file is malformed.
        TargetError: it takes a library that is not installed.
    """
    for read in (open_idx, open_cifar, open_images, open_npz):
        if (found := read(path, group)) is not None:
            return found
    if group == "train":
        raise ProgramError(f"'{path}' holds no data set", f"Known: {_KNOWN}.")
    return None


def digest_of(path: Path) -> str:
    """Name the content of a folder's files, or of a file; in subfolders, names and sizes count alone.

    Raises:
        OSError: a file cannot be read; what was named is neither a folder nor a regular file.
    """
    if not path.is_dir():
        check_regular(path)
    folder = path if path.is_dir() else path.parent
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
        if file.parent == folder:
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:32]


def unchanged_path(path: str, digest: str, what: str) -> Path:
    """Return the path of a file or folder that a workload refers to.

    Args:
        path: as it was found; empty where this user named none of this content.
        digest: of its content, when the program was read.

    Raises:
        ProgramError: it was not named, or has another content now.
        OSError: it cannot be read.
    """
    if not path:
        raise unresolved_file(what)
    if digest_of(Path(path)) != digest:
        raise ProgramError(f"{what} '{path}' changed after the program was read", "Tune again.")
    return Path(path)


COUNT = 8000
_LIT = 0.15
_MIXED = 0.55
_NOISE = 0.15


def synthetic_examples(shape: Sequence[int], classes: int) -> Examples:
    """Make examples, always the same: each is its class's pattern, mixed with that of another class.

    A tenth of them is more of the other class than of its own, so that no model has an error of 0.
    """
    rng = np.random.default_rng(0)
    size = math.prod(shape)
    patterns = (rng.random((classes, size)) < _LIT).astype(np.float32)
    labels, others = rng.integers(0, classes, (2, COUNT))
    share = rng.uniform(0, _MIXED, (COUNT, 1)).astype(np.float32)
    pixels = (1 - share) * patterns[labels] + share * patterns[others]
    pixels += np.float32(_NOISE) * rng.standard_normal((COUNT, size), np.float32)
    images = (np.clip(pixels, 0, 1) * 255).astype(np.uint8).reshape(COUNT, *shape)
    return examples_of(images, labels, "the made data")


def digits(shape: Sequence[int], classes: int) -> Examples:
    """Return scikit-learn's 1797 digits of 8 x 8, enlarged.

    Args:
        shape: of an image: flat, height x width, or with channels first or last.

    Raises:
        TargetError: scikit-learn is not installed.
    """
    try:
        from sklearn.datasets import load_digits  # type: ignore[import-not-found]
    except ImportError as error:
        what = "the digits need scikit-learn"
        raise TargetError(what, "Install it with: pip install scikit-learn") from error
    found: Any = load_digits()
    known = found.target < classes
    images = np.clip(found.images[known] * 16, 0, 255).astype(np.uint8)
    return examples_of(_enlarged(images, tuple(shape)), found.target[known], "the digits")


def _enlarged(images: NDArray[np.uint8], shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Repeat the pixels until the images have a shape."""
    if len(shape) == 1:
        side = math.isqrt(shape[0])
        flat = _resized(images, side, side).reshape(len(images), -1)
        return np.pad(flat, ((0, 0), (0, shape[0] - flat.shape[1])))
    if len(shape) == 2:
        return _resized(images, *shape)
    if shape[0] < shape[2]:
        return np.repeat(_resized(images, *shape[1:])[:, None], shape[0], axis=1)
    return np.repeat(_resized(images, *shape[:2])[..., None], shape[2], axis=3)


def _resized(images: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    rows, columns = (np.arange(n) * 8 // n for n in (height, width))
    return images[:, rows][:, :, columns]
