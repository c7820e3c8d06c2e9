"""What a module does, by every back end."""

import re
from itertools import permutations

import pytest

from levels.llvm.bindings.samples import FORMS, FORMS_INSTRUCTIONS, SAMPLES, SUM, SUM_INSTRUCTIONS
from planish.levels.llvm.bindings.protocol import Bindings, IRError, Module

SMALLER = "function(simplifycfg,sroa<preserve-cfg>,instcombine<no-verify-fixpoint>)"


def code(module: Module) -> str:
    """Print a module without comments: they tell of the order in which it came to be."""
    return re.sub(" *;.*", "", module.text()).strip()


def test_a_count_leaves_out_what_makes_no_code(bindings: Bindings):
    assert bindings.parse(SUM).instructions() == SUM_INSTRUCTIONS
    assert bindings.parse(FORMS).instructions() == FORMS_INSTRUCTIONS


def test_a_text_that_does_not_name_its_source_is_named_by_its_file(bindings: Bindings):
    text = re.sub("^source_filename.*\n", "", SUM, flags=re.MULTILINE)
    assert 'source_filename = "a \\22b\\22\\\\.ll"\n' in bindings.parse(text, 'a "b"\\.ll').text()
    named = bindings.parse(f'source_filename = "its own"\n{text}', "a.ll")
    assert 'source_filename = "its own"\n' in named.text()


@pytest.mark.parametrize("ir", ["", "declare void @f()", "@x = global i32 1"])
def test_without_definitions_there_is_nothing_to_count(bindings: Bindings, ir: str):
    module = bindings.parse(ir)
    module.run("default<Oz>")
    assert module.instructions() == 0
    assert module.text_bytes() == 0


def test_a_clone_changes_alone(bindings: Bindings):
    module = bindings.parse(SUM)
    before = module.text()
    copy = module.clone()
    copy.run(SMALLER)
    assert copy.instructions() < SUM_INSTRUCTIONS
    assert module.text() == before
    module.run(SMALLER)
    assert module.text() == copy.text()


@pytest.mark.parametrize("ir", SAMPLES.values(), ids=SAMPLES)
def test_printed_and_written_modules_read_back(bindings: Bindings, ir: str):
    module = bindings.parse(ir)
    module.run(SMALLER)
    assert code(bindings.parse(module.text())) == code(module)
    assert code(bindings.parse(module.bitcode())) == code(module)


def test_a_run_without_passes_does_nothing(bindings: Bindings):
    module = bindings.parse(SUM)
    before = module.text()
    module.run("")
    assert module.text() == before


def test_transformed_modules_are_valid(bindings: Bindings):
    module = bindings.parse(FORMS)
    module.run("default<O2>")
    assert module.verify() == ""


def test_compiling_leaves_the_module_as_it_is(bindings: Bindings):
    module = bindings.parse(SUM)
    before = module.text()
    assert module.object_code() == module.object_code()
    assert module.object_code().startswith(b"\x7fELF")
    assert module.text() == before


def test_smaller_ir_is_smaller_code(bindings: Bindings):
    module = bindings.parse(SUM)
    before = module.text_bytes()
    module.run(SMALLER)
    assert 0 < module.text_bytes() < before


def test_every_text_section_counts(bindings: Bindings):
    apart = 'define i32 @f() {\n ret i32 1\n}\ndefine i32 @g() section ".text.g" {\n ret i32 1\n}'
    together = apart.replace('section ".text.g"', "")
    other = apart.replace(".text.g", ".other")
    # Functions in one section are aligned to 16 bytes.
    assert bindings.parse(apart).text_bytes() == 2 * bindings.parse(other).text_bytes()
    assert bindings.parse(together).text_bytes() > bindings.parse(other).text_bytes()


def test_the_target_is_this_hosts_where_the_module_names_none(bindings: Bindings):
    for text in (bindings.parse(SUM).text(), bindings.parse(bindings.parse(SUM).bitcode()).text()):
        assert 'target triple = "' in text
        assert 'target datalayout = "' in text


def test_the_modules_own_target_is_kept(bindings: Bindings):
    text = bindings.parse(f'target triple = "x86_64-unknown-freebsd"\n{SUM}').text()
    assert 'target triple = "x86_64-unknown-freebsd"' in text
    assert 'target datalayout = "e-m:e' in text


def test_alignments_follow_the_data_layout(bindings: Bindings):
    """A text without a data layout is read with this host's, not with LLVM's own default, where it is 4."""
    text = bindings.parse("define i64 @f(ptr %p) {\n %x = load i64, ptr %p\n ret i64 %x\n}").text()
    assert "load i64, ptr %p, align 8" in text


def test_modules_close_in_any_order_and_twice(bindings: Bindings):
    for order in permutations(range(4)):
        modules = [bindings.parse(SUM)]
        for origin in (0, 0, 1):
            modules.append(modules[origin].clone())
        for closed, place in enumerate(order, 1):
            modules[place].close()
            modules[place].close()
            counts = [modules[other].instructions() for other in order[closed:]]
            assert counts == [SUM_INSTRUCTIONS] * (4 - closed)


def test_open_modules_outlive_closed_ones(bindings: Bindings):
    module = bindings.parse(SUM)
    copy = module.clone()
    module.close()
    copy.run(SMALLER)
    assert copy.verify() == ""
    copy.close()
    for use in (copy.instructions, copy.text, copy.verify, copy.bitcode, copy.object_code, copy.clone):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_wrong_assembly_makes_no_code(whole: Bindings, capfd: pytest.CaptureFixture[str]):
    module = whole.parse('define void @f() {\n call void asm sideeffect "garbage", ""()\n ret void\n}')
    with pytest.raises(IRError, match=r"invalid instruction mnemonic 'garbage'$"):
        module.object_code()
    # The module is none the worse.
    module.run("default<Oz>")
    assert capfd.readouterr() == ("", "")
