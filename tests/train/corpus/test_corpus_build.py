import errno
import fcntl
from pathlib import Path

import pytest

from planish.core import PlanishError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import Compiler
from planish.levels.llvm.ir.functions import identity
from planish.train.corpus.build import BuildPlan, BuildStatus, build_corpus
from planish.train.corpus.reader import read_corpus
from planish.train.corpus.shards import Row, split_of
from planish.train.corpus.sources import IRFiles
from planish.train.corpus.unit import CorpusRecipe
from train.corpus.sources import Build, Deadly, Recording, Unreadable, numbered, write

SAME = "int twice(int x) { return x + x; }\n"
SAME_BY_ANOTHER_NAME = "int zwei(int y) { return y + y; }\n"


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Read all data files."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.glob("data/*/*.parquet"))}


def test_rows_tell_where_functions_are_from(build: Build, tmp_path: Path) -> None:
    source = write(tmp_path / "pkg", one=numbered(1) + SAME, two=numbered(2))
    build(tmp_path / "out", source)
    rows = {row.function: row for row in read_corpus(tmp_path / "out")}
    assert {name: row.file for name, row in rows.items()} == {"f1": "one.c", "twice": "one.c", "f2": "two.c"}
    row = rows["twice"]
    assert (row.package, row.kind, row.split) == ("pkg", "folder", split_of("folder", "pkg"))
    assert row.license == "unknown"
    assert row.chars == len(row.ir)
    assert row.identity == identity(row.ir)
    module = open_bindings().parse(row.ir)
    assert module.instructions() == row.instructions > 1
    module.close()


def test_a_function_is_kept_once_by_the_first_package(build: Build, tmp_path: Path) -> None:
    first = write(tmp_path / "a", x=SAME, y=SAME_BY_ANOTHER_NAME)
    second = write(tmp_path / "b", x=SAME_BY_ANOTHER_NAME + numbered(3))
    card = build(tmp_path / "out", second, first)
    rows = list(read_corpus(tmp_path / "out"))
    assert sorted((row.package, row.function, row.duplicates) for row in rows) == [
        ("a", "twice", 2),
        ("b", "f3", 0),
    ]
    assert card["duplicates"] == {"found": 4, "within_packages": 1, "across_packages": 1}
    assert card["functions"] == len(rows)


def test_the_data_does_not_depend_on_order_and_processes(build: Build, tmp_path: Path) -> None:
    folders = [write(tmp_path / name, x=SAME + numbered(i), y=numbered(9)) for i, name in enumerate("abc")]
    build(tmp_path / "one", *folders)
    build(tmp_path / "two", *reversed(folders), jobs=3)
    build(tmp_path / "three", folders[1])
    build(tmp_path / "three", *folders)
    assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / "two") == bytes_of(tmp_path / "three")


def test_packages_that_are_done_are_left_alone(build: Build, display: Recording, tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", x=numbered(1)), write(tmp_path / "b", x=numbered(2))
    build(tmp_path / "out", first)
    (first / "x.c").write_text(numbered(7))  # would be seen, if it were compiled again
    card = build(tmp_path / "out", first, second)
    assert {row.function for row in read_corpus(tmp_path / "out")} == {"f1", "f2"}
    assert display.seen[-1][1] == 1
    assert card["packages"].keys() == {"folder-a", "folder-b"}


def test_files_that_do_not_compile_are_counted(build: Build, display: Recording, tmp_path: Path) -> None:
    source = write(tmp_path / "pkg", good=numbered(1), bad="int f( {", missing="#include <not/there.h>\n")
    card = build(tmp_path / "out", source)
    assert card["files"] == {"compiled": 1, "failed": 2}
    assert "'not/there.h' file not found" in card["failures"]
    write(tmp_path / "broken", bad="int f( {")
    build(tmp_path / "out", tmp_path / "broken")
    assert display.logged == ["broken: no functions (expected parameter declarator)"]


def test_long_functions_are_left_out(build: Build, tmp_path: Path) -> None:
    source = write(
        tmp_path / "pkg", x=numbered(1) + "int many(int x) {" + "x += x * 3;" * 100 + "return x; }"
    )
    card = build(tmp_path / "out", source, max_chars=2_000)
    assert [row.function for row in read_corpus(tmp_path / "out")] == ["f1"]
    assert card["left_out"] == {"too long": 1}


def test_ir_files_as_text_and_bitcode(build: Build, compiler: Compiler, tmp_path: Path) -> None:
    text = compiler.to_ir(write(tmp_path / "c", x=numbered(1)) / "x.c")
    (tmp_path / "x.ll").write_text(text)
    module = open_bindings().parse(compiler.to_ir(write(tmp_path / "c", y=numbered(2)) / "y.c"))
    (tmp_path / "y.bc").write_bytes(module.bitcode())
    (tmp_path / "z.ll").write_text("define i32 @f( {")
    files = [tmp_path / name for name in ("x.ll", "y.bc", "z.ll")]
    card = build(tmp_path / "out", IRFiles("ir", files))
    assert {row.function for row in read_corpus(tmp_path / "out")} == {"f1", "f2"}
    assert card["files"] == {"compiled": 2, "failed": 1}
    assert {row.kind for row in read_corpus(tmp_path / "out")} == {"ir"}


def test_splits_are_by_package_and_read_apart(build: Build, tmp_path: Path) -> None:
    names = ["a", "f", "pkg"]
    assert {split_of("folder", name) for name in names} >= {"train", "validation"}
    build(
        tmp_path / "out", *(write(tmp_path / n, x=numbered(i) + numbered(i + 9)) for i, n in enumerate(names))
    )
    for split in ("train", "validation", "test"):
        rows = list(read_corpus(tmp_path / "out", split))
        expected = {name for name in names if split_of("folder", name) == split}
        assert {row.package for row in rows} == expected
        assert {row.split for row in rows} <= {split}


def test_shares_of_the_splits() -> None:
    splits = [split_of("debian", f"package-{i}") for i in range(5_000)]
    assert 0.78 < splits.count("train") / 5_000 < 0.82
    assert 0.085 < splits.count("validation") / 5_000 < 0.115
    assert split_of("csmith", "package-1") == "csmith"


def test_another_recipe_needs_another_folder(build: Build, tmp_path: Path) -> None:
    source = write(tmp_path / "pkg", x=numbered(1))
    build(tmp_path / "out", source)
    with pytest.raises(PlanishError, match=r"built with max_chars 20000, and now it is 10\."):
        build(tmp_path / "out", source, max_chars=10)


def test_a_folder_is_built_by_one_process_at_a_time(build: Build, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(PlanishError, match="another process"):
            build(tmp_path / "out", write(tmp_path / "pkg", x=numbered(1)))


def test_a_damaged_manifest(build: Build, tmp_path: Path) -> None:
    source = write(tmp_path / "pkg", x=numbered(1))
    build(tmp_path / "out", source)
    (tmp_path / "out" / "manifest.json").write_text('{"format": 1')
    with pytest.raises(PlanishError, match=r"manifest\.json is damaged"):
        build(tmp_path / "out", source)


def test_reading_what_is_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(PlanishError, match="is not a corpus"):
        list(read_corpus(tmp_path))
    with pytest.raises(PlanishError, match=r"unknown split 'tain'\. Did you mean 'train'\?"):
        list(read_corpus(tmp_path, "tain"))


def test_the_card_for_people(build: Build, tmp_path: Path) -> None:
    build(tmp_path / "out", write(tmp_path / "pkg", x=numbered(1)))
    page = (tmp_path / "out" / "card.md").read_text()
    assert "1 different functions of 1 packages" in page
    assert "| pkg |" in page


def test_only_ir_needs_no_compiler(llvm: str, display: Recording, tmp_path: Path) -> None:
    (tmp_path / "x.ll").write_text("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    plan = BuildPlan([IRFiles("ir", [tmp_path / "x.ll"])], CorpusRecipe(None, 1_000), llvm, jobs=1)
    card = build_corpus(tmp_path / "out", plan, display)
    assert card["functions"] == 1
    row = next(read_corpus(tmp_path / "out"))
    assert isinstance(row, Row)
    assert row.instructions == 1


def test_c_files_may_be_added_to_ir(build: Build, llvm: str, display: Recording, tmp_path: Path) -> None:
    (tmp_path / "x.ll").write_text("define i32 @f(i32 %x) {\n  ret i32 %x\n}\n")
    files = [IRFiles("ir", [tmp_path / "x.ll"])]
    build_corpus(tmp_path / "out", BuildPlan(files, CorpusRecipe(None, 20_000), llvm, jobs=1), display)
    compiled = build(tmp_path / "out", write(tmp_path / "c", x=numbered(1)))
    assert compiled["functions"] == 2
    again = build_corpus(
        tmp_path / "out", BuildPlan(files, CorpusRecipe(None, 20_000), llvm, jobs=1), display
    )
    assert again["recipe"] == compiled["recipe"]


def test_a_file_that_is_gone_is_a_failure(build: Build, tmp_path: Path) -> None:
    card = build(tmp_path / "out", IRFiles("ir", [tmp_path / "gone.ll"]))
    assert card["files"] == {"compiled": 0, "failed": 1}
    assert "No such file" in next(iter(card["failures"]))


def test_a_worker_that_dies_costs_its_package_alone(build: Build, display: Recording, tmp_path: Path) -> None:
    good = write(tmp_path / "good", x=numbered(1))
    card = build(tmp_path / "out", Deadly(), good, jobs=2)
    assert card["failed_packages"] == {"folder-deadly": "a worker died of it"}
    assert [row.function for row in read_corpus(tmp_path / "out")] == ["f1"]
    assert display.logged == ["deadly: a worker died of it"]


def test_an_error_of_the_system_costs_its_package_unless_the_disk_is_full(
    build: Build, display: Recording, tmp_path: Path
) -> None:
    build(tmp_path / "out", Unreadable(PermissionError(errno.EACCES, "Permission denied")))
    assert display.logged == ["unreadable: [Errno 13] Permission denied"]
    with pytest.raises(PlanishError, match=r"cannot write .*: No space left"):
        build(tmp_path / "out", Unreadable(OSError(errno.ENOSPC, "No space left on device")))


def test_the_progress_of_a_build_is_of_functions_and_of_packages() -> None:
    clock = [100.0]
    status = BuildStatus(5, known=1, functions=500)
    status.now, status.started = lambda: clock[0], clock[0]
    assert (status.line, status.left) == ("1 of 5 packages, 500 functions", "")
    clock[0] = 110.0
    status.done, status.functions, status.failed = 3, 700, 1
    expected = "3 of 5 packages, 700 functions, 1 packages failed; 20 functions/s"
    assert (status.line, status.left) == (expected, "10.0 s left")
