"""Costs of functions across modules: which functions are the same, and files that are cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from planish.core.disk_cache import DiskCache
from planish.levels.llvm.modules.stored_costs import StoredCosts, context_name, exact_names

BODY = """define i32 @f(ptr %x) #0 !dbg !9 {
  %1 = getelementptr %struct.pair, ptr %x, i32 0, i32 1
  %2 = load i32, ptr %1, align 4, !tbaa !4, !dbg !8
  %3 = call i32 @callee(i32 %2) #1
  %4 = load i32, ptr @table, align 4
  ret i32 %3
}"""
MODULE = f"""target triple = "thumbv7em-unknown-none-eabi"

%struct.pair = type {{ %struct.one, i32 }}
%struct.one = type {{ i8 }}

@table = internal constant [2 x i32] [i32 1, i32 2], align 4

{BODY}

declare i32 @callee(i32) #1

attributes #0 = {{ minsize optsize }}
attributes #1 = {{ nounwind }}

!0 = !{{i32 1, !"wchar_size", i32 4}}
!4 = !{{!5, !5, i64 0}}
!5 = !{{!"int", !6, i64 0}}
!6 = !{{!"char"}}
!8 = !DILocation(line: 3, column: 1, scope: !9)
!9 = distinct !DISubprogram(name: "f", line: 1)
"""


def named(module: str) -> str:
    begin = module.index("define")
    return exact_names(module, {"f": module[begin : module.index("\n}", begin) + 2]})["f"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type { i8 }", "type { i16 }"),
        ("minsize optsize }", "optsize }"),
        ("nounwind }", "nounwind willreturn }"),
        ("declare i32 @callee", "declare dso_local i32 @callee"),
        ("[i32 1, i32 2]", "[i32 1, i32 3]"),
        ('!{!"char"}', '!{!"byte"}'),
        ("i32 0, i32 1", "i32 0, i32 0"),
    ],
)
def test_whatever_code_depends_on_makes_another_function(old: str, new: str) -> None:
    assert old in MODULE
    assert named(MODULE.replace(old, new)) != named(MODULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [("#1", "#7"), ("!5", "!50"), ("line: 3", "line: 30"), ("declare", "declare void @g()\n\ndeclare")],
)
def test_numbers_places_in_sources_and_other_functions_do_not(old: str, new: str) -> None:
    assert old in MODULE
    assert named(MODULE.replace(old, new)) == named(MODULE)


def test_modules_of_other_targets_and_flags_share_nothing() -> None:
    others = MODULE.replace("thumbv7em", "thumbv6m"), MODULE.replace('size", i32 4', 'size", i32 2')
    assert len({context_name(each) for each in (MODULE, *others)}) == 3
    assert context_name(MODULE.replace("@f", "@g")) == context_name(MODULE)


def test_costs_are_added_by_several_and_a_damaged_entry_has_none(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    one, other = StoredCosts(cache, "costs"), StoredCosts(cache, "costs")
    one.add({"a": 10})
    other.add({"b": 20})
    found = StoredCosts(cache, "costs")
    assert [found.get(name) for name in ("a", "b", "c")] == [10, 20, None]
    (tmp_path / "costs").write_bytes(b"[1")
    assert StoredCosts(cache, "costs").get("a") is None
    StoredCosts(DiskCache(tmp_path / "none"), "costs").add({"a": 10})


@pytest.mark.slow
def test_an_entry_has_what_was_added_last(tmp_path: Path) -> None:
    costs = StoredCosts(DiskCache(tmp_path), "costs")
    for first in range(0, 120_000, 100):
        costs.add({str(number): number for number in range(first, first + 100)})
    found = StoredCosts(DiskCache(tmp_path), "costs")
    known = [number for number in range(120_000) if found.get(str(number)) is not None]
    assert len(known) <= 50_000
    assert known[-1] > 100_000
