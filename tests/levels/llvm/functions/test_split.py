"""Splitting: every function stands alone, unchanged, with what it refers to and no more."""

import contextlib
import re
from collections import Counter

import pytest

from levels.llvm.functions.reference import definitions, printed
from levels.llvm.functions.samples import ODD
from planish.levels.llvm.backend.protocol import IRError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.normalise import normalise
from planish.levels.llvm.ir.split import split_module

ALONE = {f.name: f.text for f in split_module(ODD)}


def test_real_functions_stand_alone_unchanged(real: str) -> None:
    whole = definitions(real)
    split = {f.name: definitions(f.text) for f in split_module(real)}
    assert split == {name: {name: count} for name, count in whole.items()}


def test_odd_functions_stand_alone_unchanged() -> None:
    whole = definitions(ODD)
    skipped = Counter[str]()
    split = {f.name: definitions(f.text) for f in split_module(ODD, skipped)}
    assert skipped == {"it takes the address of another function's block": 1}
    del whole["takes_other"]
    assert split == {name: {name: count} for name, count in whole.items()}


def test_a_split_function_splits_into_itself(real: str) -> None:
    for function in split_module(printed(real)):
        (again,) = split_module(function.text)
        assert again == function


def test_only_what_is_referred_to_stays() -> None:
    for name, text in ALONE.items():
        statements = re.findall(r'^([@%](?:"[^"]*"|[-\w.]+)|!\d+)(?= =)', text, re.MULTILINE)
        statements += re.findall(r"^attributes (#\d+)", text, re.MULTILINE)
        for statement in statements:
            assert len(re.findall(rf"{re.escape(statement)}(?!\w)", text)) > 1, (name, statement)
    assert "%struct.unused" not in "".join(ALONE.values())


def test_types_come_with_what_they_are_made_of() -> None:
    kept = re.findall(r'^%(?:"[^"]+"|\S+)(?= = type)', ALONE["callee"], re.MULTILINE)
    assert kept == ["%struct.list", "%struct.item", '%"struct.with space"', "%struct.deep"]


DECLARED = {
    "variadic": [
        "declare fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8, { i32, %struct.item }) #0"
    ],
    "odd_inline": ["declare i32 @variadic(ptr noundef, ...) #0"],
    "many globals": [
        "declare i32 @call_alias(ptr, ...)",
        "declare i32 @resolved(i32)",
        "declare noundef i32 @printf(ptr noundef, ...) #2",
    ],
    "resolver": ["declare i32 @stable(i32 signext)"],
}
GLOBAL = {
    "callee": ["@counter = external global i32, align 4"],
    "odd_inline": [
        '@text = private unnamed_addr constant [32 x i8] c"; comment? @name %x #0 !1 } { \\22\\00", align 1'
    ],
    "many globals": [
        "@squares = internal constant [4 x i32] [i32 0, i32 1, i32 4, i32 9], align 16",
        "@handlers = internal constant [2 x ptr] [ptr @callee, ptr @variadic], align 16",
        "@large = external constant [100 x i32], align 16",
        "@replaceable = external constant i32, align 4",
        "@data_alias = external hidden global i32",
        '@"odd name" = external dso_local global { i32, %struct.item }, align 8',
        "@local = external thread_local(initialexec) global i64, align 8",
        "@far = external addrspace(1) global ptr addrspace(1), align 8",
        "@absent = extern_weak global i32, align 4",
    ],
    "jumps": [
        "@places = internal global [2 x ptr] ["
        + ", ".join(f"ptr blockaddress(@jumps, %{n})" for n in (3, 4))
        + "], align 16"
    ],
}


@pytest.mark.parametrize("owner", DECLARED)
def test_other_functions_are_declared(owner: str) -> None:
    assert set(DECLARED[owner]) <= set(ALONE[owner].splitlines())


@pytest.mark.parametrize("owner", GLOBAL)
def test_globals_are_external_but_for_short_constants_and_own_blocks(owner: str) -> None:
    assert set(GLOBAL[owner]) <= set(ALONE[owner].splitlines())


def test_a_table_of_another_functions_blocks_is_external() -> None:
    reader = ODD.replace(
        "define void @takes_other() {", "define void @reads() {\n  %1 = load ptr, ptr @places"
    )
    reader = reader.replace("  store ptr blockaddress(@jumps, %3), ptr @inner, align 8\n", "")
    split = {f.name: f.text for f in split_module(reader)}
    assert "@places = external global [2 x ptr], align 16" in split["reads"].splitlines()
    assert definitions(split["reads"]) == {"reads": 2}
    assert "@places = internal global" in split["jumps"]


def test_definitions_become_external() -> None:
    for text in ALONE.values():
        (header,) = re.findall("^define .*", text, re.MULTILINE)
        assert not re.search(r"\b(internal|weak|linkonce_odr|comdat)\b", header)


def test_debug_information_goes_and_other_metadata_stays() -> None:
    for text in ALONE.values():
        assert "!DI" not in text
        assert "#dbg_" not in text
    assert '!51 = !{!"llvm.loop.mustprogress"}' in ALONE["many globals"]
    assert '!43 = !{!"rsp"}' in ALONE["odd_inline"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("define void @f() { ret void }\n", 1),
        ("; fine\n\ndefine void @f()\n{\n  ret void\n}\n", 3),
        ("@x = global [1 x i32] [\n  i32 1\n]\n", 2),
        ("define void @f() {\n  ret void\n", 1),
    ],
)
def test_other_layouts_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(IRError, match=f"line {line} "):
        list(split_module(text))


@pytest.mark.parametrize(
    "statement", ["@x = global ", "@x = constant [2 x i32", "@x 1", "declare void @x(", "@x = global ?"]
)
def test_broken_statements_are_no_crash(statement: str) -> None:
    text = f"{statement}\ndefine ptr @f() {{\n  call void @x()\n  ret ptr @x\n}}\n"
    with contextlib.suppress(IRError):
        list(split_module(text))
    with contextlib.suppress(IRError):
        normalise(text)
    with contextlib.suppress(IRError):
        for_size(text)


def test_modules_without_definitions_give_none() -> None:
    assert list(split_module("")) == []
    assert list(split_module("; nothing\n\ndeclare void @f()\n")) == []
