import os
import subprocess
import sys
from pathlib import Path

import pytest

from planish.cc import object_cache, optimize
from planish.cc.object_cache import CachedObject, ObjectCache, atomic_write, digest
from planish.cc.optimize import FunctionMemory
from store.mounts import small_disk, write_protected

KEY = digest(b"a key")


def entry(seconds: float = 2.0, evaluations: int = 0) -> CachedObject:
    return CachedObject(seconds, evaluations, b'{"text": [2, 1]}', b"\x7fELF code", has_diagnostics=True)


def test_what_is_put_is_there(tmp_path: Path) -> None:
    ObjectCache(str(tmp_path / "new")).put(KEY, entry())
    found = ObjectCache(str(tmp_path / "new")).get(KEY)
    assert found is not None
    assert (found.seconds, found.evaluations, found.about, found.code, found.has_diagnostics) == (
        *(2.0, 0, b'{"text": [2, 1]}', b"\x7fELF code"),
        True,
    )


def test_what_cost_less_than_is_asked_for_is_not_enough() -> None:
    assert entry(2.0).is_enough(2.0, 0)
    assert entry(2.0).is_enough(1.0, 50)
    assert not entry(2.0).is_enough(20.0, 0)
    assert not entry(2.0, 50).is_enough(2.0, 0)
    assert entry(2.0, 50).is_enough(2.0, 10)


def test_a_new_folder_is_the_users_alone(tmp_path: Path) -> None:
    ObjectCache(str(tmp_path / "new")).put(KEY, entry())
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_is_open_to_others_stays_so(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    ObjectCache(str(shared)).put(KEY, entry())
    assert {path.stat().st_mode & 0o777 for path in shared.rglob("*") if path.is_dir()} == {0o777}


def test_damage_is_noticed_and_mended(tmp_path: Path) -> None:
    cache = ObjectCache(str(tmp_path))
    cache.put(KEY, entry())
    (path,) = tmp_path.glob("objects/*/*")
    for damage in (b"", b"nonsense\n", path.read_bytes()[:-1], path.read_bytes()[:-1] + b"X"):
        path.write_bytes(damage)
        again = ObjectCache(str(tmp_path))
        assert again.get(KEY) is None
        assert "damaged" in again.error
    cache.put(KEY, entry())
    assert cache.get(KEY) is not None


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with write_protected(tmp_path):
        cache = ObjectCache(str(tmp_path / "cache"))
        cache.put(KEY, entry())
        FunctionMemory(cache).put("f", "1")
    assert "cannot be written" in cache.error


def test_an_interrupt_that_comes_when_a_file_is_whole_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def interrupted(old: str, new: str) -> None:
        replace(old, new)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        atomic_write(str(tmp_path / "x"), b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may number processes anew")
def test_what_a_container_left_half_written_is_in_nobodys_way(tmp_path: Path) -> None:
    """Processes of containers have the same numbers again and again."""
    load, writes = "import os, planish.cc.object_cache as w", f"w.atomic_write('{tmp_path}/x', b'x')"
    for before in ("os.replace = lambda *_: os._exit(7)", ""):
        command = ["unshare", "--pid", "--fork", sys.executable, "-c", f"{load}\n{before}\n{writes}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "unshare failed" in done.stderr:
            pytest.skip(done.stderr)
        assert (done.returncode, done.stderr) == (0 if not before else 7, "")
    assert (tmp_path / "x").read_bytes() == b"x"


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64):
        cache = ObjectCache(str(tmp_path / "disk"))
        cache.put(KEY, CachedObject(1.0, 0, b"{}", bytes(1 << 20), has_diagnostics=False))
        assert "No space left" in cache.error
        assert not [path for path in (tmp_path / "disk").rglob("*") if path.is_file()]


def test_in_a_cache_that_is_full_the_oldest_objects_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "_LARGEST", 250)
    cache = ObjectCache(str(tmp_path))
    keys = [f"ab{number}" for number in range(4)]
    for age, key in enumerate(keys):
        cache.put(key, CachedObject(1.0, 0, b"", bytes(20), has_diagnostics=False))
        os.utime(tmp_path / "objects" / "ab" / key[2:], (age, age))
    assert [key for key in keys if cache.get(key)] == keys[2:]
    cache.put(
        keys[0], CachedObject(1.0, 0, b"", bytes(1000), has_diagnostics=False)
    )  # alone too large, and new
    assert [key for key in keys if cache.get(key)] == keys[:1]
    assert cache.error == ""


def test_a_users_lists_that_have_grown_too_large_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimize, "_LARGEST", 100)
    memory = FunctionMemory(ObjectCache(str(tmp_path)))
    for value in ("x" * 200, "second", "third"):
        memory.put("key", value)
    assert FunctionMemory(ObjectCache(str(tmp_path))).get("key") == "third"
    (path,) = tmp_path.glob("functions/*")
    assert "x" * 200 not in path.read_text()


def test_functions_are_remembered(tmp_path: Path) -> None:
    FunctionMemory(ObjectCache(str(tmp_path))).put("key", '{"a": [1, "\\n"]}')
    again = FunctionMemory(ObjectCache(str(tmp_path)))
    assert again.get("key") == '{"a": [1, "\\n"]}'
    assert again.get("other") is None


def test_a_line_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    memory = FunctionMemory(ObjectCache(str(tmp_path)))
    memory.put("key", "first")
    (path,) = tmp_path.glob("functions/*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    assert FunctionMemory(ObjectCache(str(tmp_path))).get("key") is None
    FunctionMemory(ObjectCache(str(tmp_path))).put("key", "second")
    assert FunctionMemory(ObjectCache(str(tmp_path))).get("key") == "second"


def test_what_another_user_remembers_is_read(tmp_path: Path) -> None:
    memory = FunctionMemory(ObjectCache(str(tmp_path)))
    memory.put("key", "theirs")
    (path,) = tmp_path.glob("functions/*")
    path.rename(path.with_name(path.name.replace(f"-{os.geteuid()}", "-4711")))
    assert FunctionMemory(ObjectCache(str(tmp_path))).get("key") == "theirs"
