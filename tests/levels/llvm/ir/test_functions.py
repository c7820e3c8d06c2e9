"""Functions of a module: splitting, the normal form, and the identity."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.ir.samples import ODD, definitions, printed
from planish.levels.llvm.bindings.protocol import IRError
from planish.levels.llvm.ir.attributes import for_size
from planish.levels.llvm.ir.functions import identity, normalize, split_module

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
        normalize(text)
    with contextlib.suppress(IRError):
        for_size(text)


def test_modules_without_definitions_give_none() -> None:
    assert list(split_module("")) == []
    assert list(split_module("; nothing\n\ndeclare void @f()\n")) == []


OPTIONS = [{}, {"alignment": False}, {"noundef": False}, {"alignment": False, "noundef": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_real_functions_parse_with_the_same_instructions(real: str, options: dict[str, bool]) -> None:
    for function in split_module(real):
        normal = normalize(function.text, **options)
        dropped = function.text.count("call void @llvm.experimental.noalias")
        (count,) = definitions(function.text).values()
        assert definitions(normal) == {function.name: count - dropped}
        assert normalize(normal, **options) == normal
        assert identity(normalize(printed(normal), **options)) == identity(normal)


@pytest.mark.parametrize("options", OPTIONS)
def test_odd_functions_parse(options: dict[str, bool]) -> None:
    for name, text in ALONE.items():
        normal = normalize(text, **options)
        assert list(definitions(normal)) == [name]
        assert normalize(normal, **options) == normal


def test_a_whole_module_parses(real: str) -> None:
    for text in (real, ODD):
        assert list(definitions(normalize(text))) == list(definitions(text))


def test_what_makes_no_code_goes() -> None:
    gone = re.compile(
        r'^\s|;|#\d| !\w+ !|^attributes|^source_filename|\b(?:dso_local|internal|private|weak|linkonce_odr'
        r'|comdat|section|unnamed_addr|local_unnamed_addr|hidden)\b',
        re.MULTILINE,
    )  # fmt: skip
    for text in ALONE.values():
        unquoted = re.sub('"[^"]*"', '""', normalize(text))
        assert not gone.search(unquoted)


def test_quoted_text_stays_as_it_is() -> None:
    normal = normalize(ALONE["odd_inline"])
    assert 'c"; comment? @name %x #0 !1 } { \\22\\00"' in normal
    assert 'asm sideeffect "mov #1, x0 ; } @counter"' in normal


def test_attributes_that_bind_are_written_out() -> None:
    inline = normalize(ALONE["odd_inline"])
    assert 'define i32 @odd_inline(i32 %0) "target-features"="+avx2,+cx8,+sse2" personality' in inline
    assert "declare noundef i32 @printf(ptr noundef, ...) returns_twice\n" in normalize(ALONE["many globals"])
    assert "{ i32, %struct.item } zeroinitializer) nobuiltin\n" in normalize(ALONE["variadic"])
    assert "define fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, " in normalize(
        ALONE["callee"]
    )


def test_metadata_operands_stay() -> None:
    normal = normalize(ALONE["odd_inline"])
    assert normal.endswith('}\n!43 = !{!"rsp"}\n')
    assert "noalias.scope" not in normal


def test_a_known_text() -> None:
    assert normalize(ALONE["callee"]).split("@counter", 1)[1] == (
        " = external global i32, align 4\n"
        "define fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, "
        "{ i32, %struct.item } %1) align 16 {\n"
        "%3 = load i32, ptr @counter, align 4\n"
        "%4 = icmp eq i32 %3, 0\n"
        "ret i1 %4\n"
        "}\n"
    )


def test_alignment_goes_from_plain_accesses_alone() -> None:
    normal = normalize(ALONE["recurses"], alignment=False)
    assert "%3 = alloca { i32, %struct.deep }\n" in normal
    assert "%4 = load atomic i32, ptr %1 seq_cst, align 4\n" in normal
    assert "store i32 %4, ptr %0\n" in normal
    assert "sret({ %struct.list, i32 }) align 8 %0" in normal


def test_noundef_goes() -> None:
    assert "noundef" in normalize(ALONE["callee"])
    assert "noundef" not in normalize(ALONE["callee"], noundef=False)


NORMAL = {name: normalize(text) for name, text in ALONE.items()}
NAMES = st.sampled_from(sorted(NORMAL))
FRESH = st.from_regex(r"[a-z][a-z0-9.]{0,8}", fullmatch=True)
LOCAL = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')


def renamed(text: str, names: dict[str, str]) -> str:
    """Rename local values, blocks and types, quoted text aside."""
    text = LOCAL.sub(lambda m: names.get(m[0], m[0]), text)
    return re.sub(
        r'^("[^"]*"|[-\w.$]+):',
        lambda m: names.get(f"%{m[1]}", f"%{m[1]}")[1:] + ":",
        text,
        flags=re.MULTILINE,
    )


def with_first_label(text: str) -> str:
    """Write the number of the first block as a label, where something refers to it."""
    header, body = re.findall(r"^(define .*\n)((?:.*\n)*?\}\n)", text, re.MULTILINE)[0]
    given = set(re.findall(r"^(?:%([-\w.]+) =|([-\w.]+):)", body, re.MULTILINE))
    known = {f"%{value or label}" for value, label in given} | set(LOCAL.findall(text.replace(body, "")))
    for first in set(re.findall(r"%\d+", body)) - known:
        text = text.replace(header, f"{header}{first[1:]}:\n")
    return text


@given(NAMES, st.data())
def test_renaming_changes_nothing(name: str, data: st.DataObject) -> None:
    text = NORMAL[name]
    old = sorted(set(LOCAL.findall(re.sub('c"[^"]*"', "", text))))
    new = data.draw(st.lists(FRESH, min_size=len(old), max_size=len(old), unique=True))
    other = renamed(with_first_label(text), dict(zip(old, (f"%n{n}" for n in new), strict=True)))
    own = data.draw(FRESH)
    other = re.sub(rf'@(?:"{name}"|{name}\b)', f'@"own {own}"', other)
    assert definitions(other) == {f"own {own}": definitions(text)[name]}
    assert identity(other) == identity(text)


@given(NAMES, st.data())
def test_another_operation_changes_it(name: str, data: st.DataObject) -> None:
    lines = NORMAL[name].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("define"))
    inside = [i for i in range(begin + 1, lines.index("}")) if not re.match(r'[-\w". ;]+:$', lines[i])]
    i = data.draw(st.sampled_from(inside))
    assert identity("\n".join([*lines[:i], *lines[i + 1 :], ""])) != identity(NORMAL[name])
    assert identity("\n".join([*lines[: i + 1], *lines[i:], ""])) != identity(NORMAL[name])


def test_operands_order_counts() -> None:
    text = "define i32 @f(i32 %a, i32 %b) {\n%c = sub i32 %a, %b\nret i32 %c\n}\n"
    assert identity(text) != identity(text.replace("%a, %b\n", "%b, %a\n"))
    assert identity(text) != identity(text.replace("sub i32", "sub nsw i32"))


def test_names_of_other_functions_and_external_globals_count() -> None:
    text = NORMAL["many globals"]
    assert identity(text) != identity(text.replace("@printf", "@puts"))
    assert identity(text) != identity(text.replace("@absent", "@present"))
    assert identity(text) == identity(text.replace("@squares", "@other"))
    assert identity(text) != identity(text.replace("i32 9]", "i32 10]"))


def test_the_data_layout_counts_and_the_triple_does_not() -> None:
    text = NORMAL["callee"]
    assert identity(text) == identity(text.replace("x86_64-pc-linux-gnu", "x86_64-unknown-linux-musl"))
    assert identity(text) != identity(text.replace("-S128", ""))


def test_a_types_fields_count_and_its_name_does_not() -> None:
    text = NORMAL["callee"]
    assert identity(text) == identity(text.replace("%struct.deep", "%struct.other"))
    assert identity(text) != identity(text.replace("<{ i8, double }>", "<{ i8, float }>"))


def test_the_order_of_statements_and_unused_ones_do_not_count() -> None:
    lines = NORMAL["callee"].splitlines()
    types = [line for line in lines if " = type " in line]
    rest = [line for line in lines if " = type " not in line]
    assert identity(
        "\n".join([*rest[:2], *reversed(types), "%unused = type { i1 }", *rest[2:], ""])
    ) == identity(NORMAL["callee"])


def test_a_first_blocks_label_does_not_count() -> None:
    assert identity(NORMAL["stable"]) == identity(
        NORMAL["stable"].replace("\nentry:", "").replace("%entry", "%0")
    )


def test_duplicates_are_found_across_flags_of_naming(clang: Callable[[str], str]) -> None:
    plain, named = (
        {f.name: identity(normalize(f.text)) for f in split_module(clang(flags))}
        for flags in ("plain", "named")
    )
    assert plain == named
    assert len(set(plain.values())) == len(plain)


@pytest.mark.parametrize("name", sorted(NORMAL))
def test_it_is_a_short_hexadecimal_name(name: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", identity(NORMAL[name]))
