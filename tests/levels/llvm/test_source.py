"""Programs as they are read: from files, from IR, and from what the store keeps of them."""

import platform
import re
from pathlib import Path

import pytest

from levels.llvm.modules import ECHO, HARNESS, SUM, require_compiler
from planish.core import PlanishError, ProgramError, TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.bindings.protocol import IRError
from planish.levels.llvm.level import LlvmLevel
from planish.levels.llvm.program import IRProgram, Running
from planish.levels.llvm.source import reading_directive
from planish.tuning.api import task_of
from planish.tuning.batch import load_parts
from planish.tuning.settings import Settings

PROCESSOR = "x86-64-v3" if platform.machine() == "x86_64" else "generic"
EXAMPLES = Path(__file__).parents[3] / "examples" / "llvm"


def load(source: object, **options: str) -> IRProgram:
    return LlvmLevel().load(str(source), options)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sum.ll"
    path.write_text(SUM)
    return path


def test_a_file_is_named_by_what_it_holds(file: Path) -> None:
    program = load(file)
    assert program.definitions == ("sum", "twice", "four")
    assert program.text.startswith("; sum.c: 3 functions, 27 instructions\nsource_filename")


@pytest.mark.parametrize(
    ("name", "shown"), [("ünï 1.ll", "ünï 1.ll"), ('a "b".ll', 'a "b".ll'), ("a\nb.ll", "a\\0Ab.ll")]
)
def test_a_module_without_a_source_is_named_by_its_file_as_people_write_it(
    tmp_path: Path, name: str, shown: str
) -> None:
    """LLVM escapes what is not ASCII; a line break stays escaped, for the title is a line of the text."""
    (tmp_path / name).write_text(re.sub("^source_filename.*\n", "", SUM, flags=re.MULTILINE))
    program = load(tmp_path / name)
    assert program.title == f"{shown}: 3 functions, 27 instructions"
    assert load(program.text) == program


@pytest.mark.parametrize(
    "options", [{}, {"function": "twice"}, {"args": "-n '4 5'", "stdin": "", "harness": ""}]
)
def test_the_canonical_text_reads_back(file: Path, tmp_path: Path, options: dict[str, str]) -> None:
    (tmp_path / "h.c").write_text(HARNESS)
    (tmp_path / "input").write_bytes(bytes(range(256)))
    files = {"stdin": str(tmp_path / "input"), "harness": str(tmp_path / "h.c")}
    program = load(file, **{name: files.get(name, text) for name, text in options.items()})
    assert load(program.text) == program
    assert load(program.text).text == program.text
    if "args" in options:
        assert program.running
        assert program.running.args == ("-n", "4 5")
        assert program.running.stdin == bytes(range(256))
        assert program.running.harness
        assert program.running.harness.text == HARNESS


def test_libraries_are_a_part_of_the_program(file: Path) -> None:
    program = load(file, link="-lz -pthread")
    assert program.running
    assert program.running.link == ("-lz", "-pthread")
    assert load(program.text) == program
    assert "link" not in load(file, args="5").text


def test_a_command_line_says_how_it_is_run(file: Path, tmp_path: Path) -> None:
    given = tmp_path / "my input"
    given.write_bytes(b"1 2")
    program = load(file, run=f"./prog -n '4 5' < '{given}'")
    assert program.running == Running(("-n", "4 5"), b"1 2")
    assert program == load(file, args="-n '4 5'", stdin=str(given))
    assert load(file, run="./prog").running == Running(asked=True) == load(file, run="yes").running


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("./prog | sort", "run=./prog | sort needs a shell for '|'. Write it as run='./prog 5 < input'."),
        ("./prog < a b", "run=./prog < a b needs a shell for '<'. Write it as run='./prog 5 < input'."),
        ("./prog 'a", "run=./prog 'a cannot be read: No closing quotation. Quote as in a shell."),
        ("no", "run cannot be 'no'. Write run=yes, or as run='./prog 5 < input'."),
        ("./prog < none", "cannot read 'none': No such file or directory. Check the path."),
    ],
)
def test_a_command_line_that_cannot_be_followed(file: Path, run: str, message: str) -> None:
    with pytest.raises(ProgramError) as raised:
        load(file, run=run)
    assert str(raised.value) == message


def test_a_command_line_and_its_parts_are_not_both_said(file: Path) -> None:
    with pytest.raises(ProgramError, match="run= says what args= and stdin= say"):
        load(file, run="./prog 5", args="5")


def _fast(text: str) -> bool:
    """Whether clang wrote a module for the passes of -O3: with types, and no wish for small code."""
    return "!tbaa" in text and "optsize" not in text and "optnone" not in text


def test_c_is_compiled_for_the_objective_that_leads() -> None:
    require_compiler()
    level, program = LlvmLevel(), load(EXAMPLES / "words.c", args="5")
    settings = [Settings(objectives=names) for names in (("time_s",), (), ("instructions", "time_s"))]
    fast, small, both = (task_of(level, program, each).program for each in settings)
    assert _fast(fast.ir)
    assert fast.running == program.running
    assert not _fast(small.ir)
    assert small == both == program == load(program.text)
    assert task_of(level, load(fast.text), settings[0]).program == fast


def test_code_is_made_for_a_processor(file: Path) -> None:
    require_compiler()
    given = '"target-cpu"="x86-64" "tune-cpu"="generic"'
    text = f"define void @f() #0 {{\n  ret void\n}}\nattributes #0 = {{ cold {given} }}\n"
    for source in (str(file), text, str(EXAMPLES / "words.c")):
        found = re.findall('"target-cpu"="([^"]*)"', load(source, processor=PROCESSOR).ir)
        assert set(found) == {PROCESSOR}
    assert load(file, processor=PROCESSOR).definitions == load(file).definitions


@pytest.mark.parametrize("name", ["z80", "x86-64 -o /tmp/x"])
def test_a_processor_that_clang_does_not_know(file: Path, name: str) -> None:
    require_compiler()
    with pytest.raises(ProgramError, match=f"knows no processor '{name}'. Write processor=native, or a name"):
        load(file, processor=name)


@pytest.mark.parametrize("word", ["-Wl,--version", "-l:a.o", "-l../a", "-fplugin=a.so", "@a", "a.o", "-l-a"])
def test_only_libraries_are_linked(file: Path, word: str) -> None:
    with pytest.raises(ProgramError, match="are not linked with"):
        load(file, link=word)
    stored = load(file, link="-lz").text.replace('"-lz"', f'"{word}"')
    with pytest.raises(ProgramError, match="are not linked with"):
        LlvmLevel().read(stored, LlvmLevel().target(load(file), 1))


def test_bitcode_and_text_are_one_program(file: Path, tmp_path: Path) -> None:
    module = open_bindings().parse(SUM)
    (tmp_path / "sum.bc").write_bytes(module.bitcode())
    module.close()
    assert load(tmp_path / "sum.bc") == load(file) == load(SUM)


def test_where_a_file_lies_is_no_part_of_the_program(tmp_path: Path) -> None:
    texts: set[str] = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "f.ll"
        path.write_text("; my notes\ndefine void @f() {\n  ret void\n}\n")
        texts.add(load(path).text)
    (text,) = texts
    assert text.startswith("; f.ll: @f, 1 instruction\n")


def test_one_function_brings_what_it_needs(file: Path) -> None:
    program = load(file, function="four")
    assert program.definitions == ("four",)
    assert "declare i32 @twice(i32)" in program.ir
    assert program.text.startswith("; sum.c: @four, 3 instructions\n")
    assert program.running is None
    assert not program.can_run


def test_every_function_is_a_part(file: Path) -> None:
    _, parts = load_parts(str(file), "", {})
    assert list(parts) == ["sum", "twice", "four"]
    assert parts["twice"].text == load(file, function="twice").text


def test_c_is_compiled() -> None:
    require_compiler()
    program = load(EXAMPLES / "words.c")
    assert "main" in program.definitions
    assert "optnone" not in program.ir


def test_the_example_of_zlib_is_read() -> None:
    program = load(EXAMPLES / "inflate.ll")
    assert len(program.definitions) == 22
    assert program.instructions == 4945


BAD = {
    "define i32 @f() {\n  %x = addd i32 1, 2\n  ret i32 %x\n}\n": ":2:8: expected instruction opcode",
    "define i32 @f() {\n  ret i64 0\n}\n": ":2:7: value doesn't match function result type 'i32'",
    "": " defines no function. Name a module with one at least.",
    "declare i32 @f()\n": " defines no function. Name a module with one at least.",
    "hello": ":1:1: expected top-level entity",
    "d\xe9fine": ":1:1: expected top-level entity",
    'define void @f() {\n  new\n}\n!llvm.ident = !{!0}\n!0 = !{!"clang version 99.1.0"}\n': "newer LLVM (99)",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_module_is_an_error_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.ll"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ProgramError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert BAD[text] in str(caught.value)


def test_bytes_that_are_no_bitcode_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.bc"
    path.write_bytes(b"BC\xc0\xde" + bytes(range(255, 100, -1)))
    with pytest.raises(IRError, match=r"bad\.bc"):
        load(path)


def test_what_cannot_be_read_is_an_error(tmp_path: Path, file: Path) -> None:
    (tmp_path / "folder.ll").mkdir()
    with pytest.raises(ProgramError, match="Is a directory"):
        load(tmp_path / "folder.ll")
    with pytest.raises(ProgramError, match="No such file"):
        load(tmp_path / "absent.bc")
    with pytest.raises(ProgramError, match="No such file"):
        load(file, stdin=str(tmp_path / "absent"))
    with pytest.raises(ProgramError, match=r"not a \.c or \.ll file"):
        load(file, harness=str(tmp_path / "harness.py"))


OPTIONS = {
    ("function", "tvice"): "Did you mean 'twice'",
    ("funktion", "twice"): "no option 'funktion'. Did you mean 'function'",
    ("args", "'a"): "No closing quotation",
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_is_wrong_is_an_error(file: Path, option: tuple[str, str]) -> None:
    with pytest.raises(PlanishError, match=OPTIONS[option]):
        load(file, **dict([option]))


def test_two_mains_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "echo.ll").write_text(ECHO)
    with pytest.raises(ProgramError, match="and so has the harness"):
        load(tmp_path / "echo.ll", harness=str(tmp_path / "echo.ll"))


def test_c_without_a_compiler_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANISH_CLANG", str(tmp_path / "absent"))
    (tmp_path / "f.c").write_text("int f(void) { return 0; }")
    with pytest.raises(TargetError, match="PLANISH_CLANG"):
        load(tmp_path / "f.c")


def test_c_that_does_not_compile_has_its_place(tmp_path: Path) -> None:
    require_compiler()
    (tmp_path / "f.c").write_text("int f(void) { return 0 }")
    with pytest.raises(ProgramError, match=r"f\.c:1:23: (error: )?expected ';'"):
        load(tmp_path / "f.c")


def test_a_back_end_that_is_not_there_is_an_error(file: Path) -> None:
    with pytest.raises(PlanishError, match=r"libllv.*Did you mean|libllvm"):
        load(file, backend="libllv")


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
