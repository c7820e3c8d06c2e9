"""Inline assembly that may read files is found in a module, however it is spelt."""

import pytest

from planish.levels.llvm.source import reading_directive

CALL = 'define void @f() {{\n  call void asm sideeffect "{}", "~{{memory}}"()\n  ret void\n}}\n'


@pytest.mark.parametrize(
    "text",
    [
        r".incbin \22data\22",
        r"nop\0A\09.INCLUDE \22data\22",
        r".section .rodata\0A.incbin \22data\22",
        r".inc\\()bin \22data\22",
        r".macro get what\0A.inc\\what \22data\22\0A.endm",
        r".irpc c,x\0A.endr",
        r".inc${0:c} \22data\22",
        r".$0 \22data\22",
        r"${0:c} \22data\22",
        r"nop; $0 \22data\22",
        r"\2Eincbin \22data\22",
        r"1:.incbin \22data\22",
        r".in$(cbin$|x$) \22data\22",
    ],
)
def test_directives_that_may_read_files_are_found(text: str) -> None:
    assert reading_directive(CALL.format(text))
    assert reading_directive(f'module asm "{text}"\n')


@pytest.mark.parametrize(
    "text",
    [
        "cpuid",
        r"mov ${0:w}, %ax\0Alock; cmpxchgb $1, $2",
        r"1:\09jmp 2f\0A2:\0A.pushsection .discard.reachable,\22a\22\0A.long 1b - .\0A.popsection",
        r".section .note.incbin,\22a\22\0A.balign 4\0A.previous",
        r".Lhere${:uid}: jmp .Lhere${:uid}",
        r".if 1\0A.skip 4,0x90\0A.endif\0A.set here, .",
        "",
    ],
)
def test_everyday_assembly_reads_none(text: str) -> None:
    assert reading_directive(CALL.format(text)) == ""
    assert reading_directive("define void @asm() {\n  ret void\n}\n") == ""
