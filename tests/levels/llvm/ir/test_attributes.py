"""Attributes of size and optimization: on every definition, on nothing else, and only once."""

import re
from collections.abc import Callable

import pytest

from levels.llvm.ir.samples import ODD, definitions, printed
from planish.levels.llvm.ir.attributes import for_size, without_optnone
from planish.levels.llvm.ir.functions import normalize

UNOPTIMIZED = """define void @a() noinline optnone section "optnone" {
  ret void
}
define internal i32 @b(ptr byval(%"a)b") %0, i32 %1) unnamed_addr addrspace(0) #0 comdat($b) align 4 !dbg !3 {
  call void @c() #0
  ret i32 0
}
declare void @c() #0
define void @d(){
  ret void
}
define void @e() noinline #1 {
  ret void
}
attributes #0 = { noinline nounwind optnone "frame-pointer"="all" " optnone "="1" }
attributes #1 = { nounwind minsize }
"""


def attributes(text: str) -> dict[str, tuple[str, set[str]]]:
    """Let LLVM parse and print; gives whether each function is defined, and the words of its attributes."""
    module = printed(text)
    groups = {
        number: set(re.findall(r"\b[a-z]+\b", re.sub('"[^"]*"', "", listed)))
        for number, listed in re.findall(r"^attributes (#\d+) = (.*)", module, re.MULTILINE)
    }
    heads = re.findall(
        r'^(define|declare) (?:[^"@\n]|"[^"]*")*@("[^"]*"|[-\w.]+)\((.*)', module, re.MULTILINE
    )
    return {
        name: (kind, {word for number in re.findall(r" (#\d+)", tail) for word in groups[number]})
        for kind, name, tail in heads
    }


def check(text: str, changed: str, wanted: set[str]) -> None:
    """Check what LLVM reads against what it read before."""
    before, after = attributes(text), attributes(changed)
    assert after.keys() == before.keys()
    defined = {name.strip('"') for name, (kind, _) in before.items() if kind == "define"}
    assert defined == definitions(text).keys()
    for name, (kind, old) in before.items():
        dropped = {"optnone", "noinline"} if "optnone" in old else set[str]()
        assert after[name] == (kind, (old - dropped) | wanted if kind == "define" else old)


def test_every_real_definition_is_for_size(real: str) -> None:
    check(real, for_size(real), {"minsize", "optsize"})
    check(real, without_optnone(real), set())
    check(normalize(real), for_size(normalize(real)), {"minsize", "optsize"})


def test_odd_definitions_are_for_size() -> None:
    check(ODD, for_size(ODD), {"minsize", "optsize"})
    check(ODD, without_optnone(ODD), set())


def test_code_stays_as_it_is(real: str) -> None:
    assert definitions(for_size(real)) == definitions(real)


@pytest.mark.parametrize("change", [for_size, without_optnone])
def test_a_second_time_changes_nothing(change: Callable[[str], str], real: str) -> None:
    for text in (real, ODD, UNOPTIMIZED, ""):
        assert change(change(text)) == change(text)


def test_a_known_text() -> None:
    expected = UNOPTIMIZED.replace("@a() noinline optnone section", "@a() minsize optsize section")
    expected = expected.replace("addrspace(0) #0", "addrspace(0) minsize optsize #2")
    expected = expected.replace("@d(){", "@d() minsize optsize{").replace(
        "@e() noinline", "@e() optsize noinline"
    )
    added = 'attributes #2 = { nounwind "frame-pointer"="all" " optnone "="1" }\n'
    assert for_size(UNOPTIMIZED) == expected + added


def test_optimized_code_keeps_its_noinline() -> None:
    text = "define void @f() noinline {\n  ret void\n}\n"
    assert without_optnone(text) == text
    assert for_size(text) == "define void @f() minsize optsize noinline {\n  ret void\n}\n"
