"""The normal form: it parses, counts the same, is a fixed point, and holds nothing that makes no code."""

import re

import pytest

from levels.llvm.functions.reference import definitions, printed
from levels.llvm.functions.samples import ODD
from planish.levels.llvm.ir.normalise import identity, normalise
from planish.levels.llvm.ir.split import split_module

ALONE = {f.name: f.text for f in split_module(ODD)}
OPTIONS = [{}, {"alignment": False}, {"noundef": False}, {"alignment": False, "noundef": False}]


@pytest.mark.parametrize("options", OPTIONS)
def test_real_functions_parse_with_the_same_instructions(real: str, options: dict[str, bool]) -> None:
    for function in split_module(real):
        normal = normalise(function.text, **options)
        dropped = function.text.count("call void @llvm.experimental.noalias")
        (count,) = definitions(function.text).values()
        assert definitions(normal) == {function.name: count - dropped}
        assert normalise(normal, **options) == normal
        assert identity(normalise(printed(normal), **options)) == identity(normal)


@pytest.mark.parametrize("options", OPTIONS)
def test_odd_functions_parse(options: dict[str, bool]) -> None:
    for name, text in ALONE.items():
        normal = normalise(text, **options)
        assert list(definitions(normal)) == [name]
        assert normalise(normal, **options) == normal


def test_a_whole_module_parses(real: str) -> None:
    for text in (real, ODD):
        assert list(definitions(normalise(text))) == list(definitions(text))


def test_what_makes_no_code_goes() -> None:
    gone = re.compile(
        r'^\s|;|#\d| !\w+ !|^attributes|^source_filename|\b(?:dso_local|internal|private|weak|linkonce_odr'
        r'|comdat|section|unnamed_addr|local_unnamed_addr|hidden)\b',
        re.MULTILINE,
    )  # fmt: skip
    for text in ALONE.values():
        unquoted = re.sub('"[^"]*"', '""', normalise(text))
        assert not gone.search(unquoted)


def test_quoted_text_stays_as_it_is() -> None:
    normal = normalise(ALONE["odd_inline"])
    assert 'c"; comment? @name %x #0 !1 } { \\22\\00"' in normal
    assert 'asm sideeffect "mov #1, x0 ; } @counter"' in normal


def test_attributes_that_bind_are_written_out() -> None:
    inline = normalise(ALONE["odd_inline"])
    assert 'define i32 @odd_inline(i32 %0) "target-features"="+avx2,+cx8,+sse2" personality' in inline
    assert "declare noundef i32 @printf(ptr noundef, ...) returns_twice\n" in normalise(ALONE["many globals"])
    assert "{ i32, %struct.item } zeroinitializer) nobuiltin\n" in normalise(ALONE["variadic"])
    assert "define fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, " in normalise(
        ALONE["callee"]
    )


def test_metadata_operands_stay() -> None:
    normal = normalise(ALONE["odd_inline"])
    assert normal.endswith('}\n!43 = !{!"rsp"}\n')
    assert "noalias.scope" not in normal


def test_a_known_text() -> None:
    assert normalise(ALONE["callee"]).split("@counter", 1)[1] == (
        " = external global i32, align 4\n"
        "define fastcc zeroext i1 @callee(ptr noundef byval(%struct.list) align 8 %0, "
        "{ i32, %struct.item } %1) align 16 {\n"
        "%3 = load i32, ptr @counter, align 4\n"
        "%4 = icmp eq i32 %3, 0\n"
        "ret i1 %4\n"
        "}\n"
    )


def test_alignment_goes_from_plain_accesses_alone() -> None:
    normal = normalise(ALONE["recurses"], alignment=False)
    assert "%3 = alloca { i32, %struct.deep }\n" in normal
    assert "%4 = load atomic i32, ptr %1 seq_cst, align 4\n" in normal
    assert "store i32 %4, ptr %0\n" in normal
    assert "sret({ %struct.list, i32 }) align 8 %0" in normal


def test_noundef_goes() -> None:
    assert "noundef" in normalise(ALONE["callee"])
    assert "noundef" not in normalise(ALONE["callee"], noundef=False)
