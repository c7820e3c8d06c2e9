"""Data sets as they come, read back as what was written."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from damaged_files import damage_zip
from planish.core import ProgramError, TargetError
from planish.levels.hlo.workload.data import digest_of, digits, open_data, synthetic_examples

DRAW = np.random.default_rng(0)
IMAGES = DRAW.integers(0, 256, (7, 4, 5), np.uint8)
LABELS = np.array([0, 1, 2, 0, 1, 2, 1])
BATCH = DRAW.integers(0, 256, (4, 3072), np.uint8)
needs_pillow = pytest.mark.skipif(
    find_spec("PIL") is None and os.environ.get("CI") != "true", reason="Pillow is not installed"
)


def idx(array: Any) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def check(folder: Path, group: Any, images: Any, labels: Any) -> None:
    found = open_data(folder, group)
    assert found is not None
    assert found.labels.tolist() == list(labels)
    indices = np.array([2, 0])
    assert np.array_equal(found.images(indices), images[indices])


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_those_of_mnist(tmp_path: Path, zipped: bool) -> None:
    for prefix, end in (("train", 7), ("t10k", 4)):
        for name, array in (("images-idx3", IMAGES[:end]), ("labels-idx1", LABELS[:end].astype("u1"))):
            data = idx(array)
            path = tmp_path / f"{prefix}-{name}-ubyte{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(data) if zipped else data)
    check(tmp_path, "train", IMAGES, LABELS)
    check(tmp_path, "test", IMAGES, LABELS[:4])


@pytest.mark.parametrize("data", [b"", b"\0\0\x0d\1\0\0\0\1....", idx(IMAGES)[:-1], b"\0\0\x08\x03\0\0"])
def test_a_broken_idx_file_is_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(data)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(LABELS.astype("u1")))
    with pytest.raises(ProgramError, match="train-images-idx3"):
        open_data(tmp_path, "train")


def test_images_without_labels_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(IMAGES))
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(idx(LABELS[:5].astype("u1")))
    with pytest.raises(ProgramError, match="7 images and labels of shape \\[5\\]"):
        open_data(tmp_path, "train")


def test_cifar_batches_of_python(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    for number in (1, 2):
        batch = {b"data": BATCH[2 * number - 2 : 2 * number], b"labels": [number, 9]}
        (folder / f"data_batch_{number}").write_bytes(pickle.dumps(batch))
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": BATCH, b"labels": [3, 4, 5, 6]}))
    images = BATCH.reshape(4, 3, 32, 32).transpose(0, 2, 3, 1)
    check(tmp_path, "train", images, [1, 9, 2, 9])
    check(folder, "test", images, [3, 4, 5, 6])


def test_a_pickle_that_calls_anything_is_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "data_batch_1").write_bytes(pickle.dumps({b"data": Evil(), b"labels": [1]}))
    with pytest.raises(ProgramError, match="mkdir"):
        open_data(tmp_path, "train")
    assert not (tmp_path / "made").exists()


def test_cifar_batches_of_records(tmp_path: Path) -> None:
    records = np.concatenate([np.array([[5], [6], [7], [8]], np.uint8), BATCH], axis=1)
    records.tofile(tmp_path / "data_batch_1.bin")
    images = BATCH.reshape(4, 3, 32, 32).transpose(0, 2, 3, 1)
    check(tmp_path, "train", images, [5, 6, 7, 8])
    assert open_data(tmp_path, "test") is None
    records.tofile(tmp_path / "data_batch_1.bin", sep="")
    (tmp_path / "data_batch_1.bin").write_bytes(records.tobytes()[:-1])
    with pytest.raises(ProgramError, match="whole number of records"):
        open_data(tmp_path, "train")


@needs_pillow
@pytest.mark.parametrize("packed", [False, True])
def test_images_have_the_classes_of_their_folders(tmp_path: Path, packed: bool) -> None:
    from PIL import Image

    images = DRAW.integers(0, 256, (4, 6, 5, 3), np.uint8)
    source = tmp_path / "source"
    for image, name in zip(images, ("cat/1.png", "cat/2.png", "ant/1.png", "dog/9.png"), strict=True):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(source / name)
    if packed:
        with tarfile.open(tmp_path / "train.tar", "w") as tar:
            tar.add(source, ".")
    else:
        source.rename(tmp_path / "train")
    check(tmp_path, "train", images[[2, 0, 1, 3]], [0, 1, 1, 2])


def test_images_without_pillow_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with tarfile.open(tmp_path / "train.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("cat/1.jpg"), io.BytesIO())
    found = open_data(tmp_path, "train")
    assert found is not None
    with pytest.raises(TargetError, match="pip install pillow"):
        found.images(np.array([0]))


def test_npz_files_by_either_names(tmp_path: Path) -> None:
    floats = IMAGES / np.float32(255)
    np.savez(tmp_path / "a.npz", images=floats, labels=LABELS[:, None], x_test=IMAGES, y_test=LABELS)
    check(tmp_path / "a.npz", "train", floats, LABELS)
    check(tmp_path, "test", IMAGES, LABELS)
    np.savez(tmp_path / "a.npz", pictures=floats)
    with pytest.raises(ProgramError, match="lacks the arrays"):
        open_data(tmp_path, "train")
    np.savez_compressed(tmp_path / "a.npz", images=floats, labels=LABELS)
    damage_zip(tmp_path / "a.npz")
    with pytest.raises(ProgramError, match="cannot read '"):
        open_data(tmp_path, "train")


@pytest.mark.parametrize(
    "labels", [LABELS - 1, LABELS + 0.5, LABELS + np.nan, LABELS + np.inf, LABELS.astype(str)]
)
def test_labels_are_whole_numbers_from_0(tmp_path: Path, labels: Any) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=labels)
    with pytest.raises(ProgramError, match="whole numbers"):
        open_data(tmp_path, "train")


def test_an_unknown_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="holds no data set"):
        open_data(tmp_path, "train")


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = digest_of(tmp_path)
    assert digest_of(tmp_path) == before
    (tmp_path / "a").write_text("2")
    assert digest_of(tmp_path) != before


def test_made_examples_are_the_same_ones_and_can_be_learnt() -> None:
    one, other = synthetic_examples((6, 6), 3), synthetic_examples((6, 6), 3)
    indices = np.arange(500)
    images = one.images(indices)
    assert np.array_equal(images, other.images(indices))
    means = np.stack([images[one.labels[:500] == c].mean(axis=0) for c in range(3)]).reshape(3, 36)
    nearest = ((images.reshape(500, 1, 36) - means) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.02 < (nearest != one.labels[:500]).mean() < 0.25


@pytest.mark.parametrize("shape", [(784,), (28, 28), (3, 32, 32), (32, 32, 3), (70,)])
def test_digits_are_enlarged(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]) -> None:
    datasets = ModuleType("sklearn.datasets")
    images = np.zeros((3, 8, 8))
    images[1, 0, 0] = 16
    datasets.__dict__["load_digits"] = lambda: SimpleNamespace(images=images, target=np.array([0, 1, 2]))
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", datasets)
    examples = digits(shape, 2)
    assert examples.labels.tolist() == [0, 1]
    found = examples.images(np.array([0, 1]))
    assert found.shape == (2, *shape)
    assert found[0].max() == 0
    assert found[1].flat[0] == 255
    assert 0 < (found[1] > 0).mean() < 1 / 30
