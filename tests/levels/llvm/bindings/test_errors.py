"""What cannot be read or run is told in one line, and never printed."""

import pytest

from levels.llvm.bindings.samples import INSIDE_OUT, SUM
from planish.core import TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import Bindings, IRError, PassError
from planish.levels.llvm.bindings.reading import invalid, unreadable

NEWER = '\n!llvm.ident = !{!0}\n!0 = !{!"clang version 99.1.0"}\n'


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        ("define i32 @f() {\n  ret i32 %x\n}", "a.ll:2:11: use of undefined value '%x'"),
        ("\n\n  nonsense", "a.ll:3:3: expected top-level entity"),
        ('target triple = "x86_64-pc-linux-gnu"\nnonsense', "a.ll:2:1: expected top-level entity"),
        (b"BC\xc0\xdeand so on", "a.ll: Invalid bitcode"),
        (INSIDE_OUT, "a.ll: the IR is invalid: Instruction does not dominate all uses! %b = add"),
    ],
)
def test_malformed_ir_is_reported_with_its_place(
    bindings: Bindings, ir: str | bytes, message: str, capfd: pytest.CaptureFixture[str]
):
    with pytest.raises(IRError) as caught:
        bindings.parse(ir, "a.ll")
    assert caught.value.message.startswith(message)
    assert "\n" not in str(caught.value)
    bindings.parse(SUM).run("globalopt")  # which a past error does not disturb
    assert capfd.readouterr() == ("", "")


def test_text_of_a_newer_llvm_is_named(bindings: Bindings):
    with pytest.raises(IRError, match=r"^a\.ll:1:19: .*; it is of a newer LLVM \(99\) than this one \(\d+\."):
        bindings.parse(f"declare void @f() fromthefuture{NEWER}", "a.ll")
    with pytest.raises(IRError, match=r"is invalid.*newer LLVM \(99\)"):
        bindings.parse(INSIDE_OUT + NEWER)


def test_bitcode_of_a_newer_llvm_is_named():
    said = "error: Unknown attribute kind (102) (Producer: 'LLVM22.1.8' Reader: 'LLVM 19.1.7')"
    assert "newer LLVM (22) than this one (19.1.7)" in unreadable("a.bc", b"", said, "19.1.7", 0).message
    assert "newer" not in unreadable("a.bc", b"", said, "22.1.0", 0).message
    assert "newer" not in invalid("a.bc", b'!"clang version 22.1.8"', "wrong", "22.1.0").message


def test_text_that_reads_is_not_asked_for_its_version(bindings: Bindings):
    assert bindings.parse(SUM + NEWER).instructions() > 0


def test_targets_without_code_are_reported(bindings: Bindings):
    with pytest.raises(TargetError, match="nowhere-unknown"):
        bindings.parse('target triple = "nowhere-unknown"')


@pytest.mark.parametrize(
    "pipeline",
    ["nonsense", "function(nonsense)", "function(gvn<nonsense>)", "function(globalopt)", "function(gvn", ","],
)
def test_refused_pipelines_change_nothing(whole: Bindings, pipeline: str, capfd: pytest.CaptureFixture[str]):
    module = whole.parse(SUM)
    before = module.text()
    with pytest.raises(PassError, match="LLVM refuses"):
        module.run(f"function(mem2reg),{pipeline}")
    assert module.text() == before
    assert not whole.runs(pipeline)
    assert whole.runs("function(gvn<no-pre>)")
    assert capfd.readouterr() == ("", "")


def test_the_reduced_back_end_refuses_what_it_cannot_express():
    module = open_bindings("llvmlite-reduced").parse(SUM)
    before = module.text()
    with pytest.raises(PassError, match=r"cannot run 'function\(gvn\)'"):
        module.run("function(simplifycfg,gvn)")
    assert module.text() == before
