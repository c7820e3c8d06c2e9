"""Identity: renaming changes nothing, another operation does."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levels.llvm.functions.reference import definitions
from levels.llvm.functions.samples import ODD
from planish.levels.llvm.ir.normalise import identity, normalise
from planish.levels.llvm.ir.split import split_module

NORMAL = {f.name: normalise(f.text) for f in split_module(ODD)}
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
        {f.name: identity(normalise(f.text)) for f in split_module(clang(flags))}
        for flags in ("plain", "named")
    )
    assert plain == named
    assert len(set(plain.values())) == len(plain)


@pytest.mark.parametrize("name", sorted(NORMAL))
def test_it_is_a_short_hexadecimal_name(name: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", identity(NORMAL[name]))
