"""Whole modules made smaller function by function."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import pytest

from planish.core import PlanishError, TargetError
from planish.levels.llvm.backend import IRError, elf, open_backend
from planish.levels.llvm.backend.c_definitions import Calls
from planish.levels.llvm.backend.c_module import CModule
from planish.levels.llvm.clang import find_compiler
from planish.levels.llvm.modules import (
    ModuleProgress,
    ModuleRecipe,
    SizeResult,
    budget,
    compare_measures,
    export_improved,
    improve_module,
    make_smaller,
)
from planish.levels.llvm.modules.function_lists import ListJob, ModuleChunk, jobs
from planish.levels.llvm.modules.inlining import InliningSearch
from planish.levels.llvm.modules.transform import remake, single
from planish.levels.llvm.passes import print_pipeline

SOURCE = r"""
#include <stddef.h>
typedef int (*Call)(int);
extern int puts(const char *);
extern int printf(const char *, ...);
static _Thread_local int last;
static int seen[64];

__attribute__((constructor)) static void begin(void) { last = 7; }

static int plain(int x) { last = x; return x * 3 + last; }
extern int other(int) __attribute__((alias("named")));
int named(int x) { return plain(x) ^ 5; }

__attribute__((weak)) int overridden(int x) { return x - 1; }
__attribute__((section("special"))) int placed(int x) { return x + 11; }

int machine(const char *s) {
    static const void *const to[] = {&&add, &&sub, &&end};
    int sum = 0;
    goto *to[(*s++ - '0') % 3];
add: sum += *s - '0'; goto *to[(*s++ - '0') % 3];
sub: sum -= *s - '0'; goto *to[(*s++ - '0') % 3];
end: return sum;
}

int choose(int kind, int a, int b, int *out) {
    if (a == b) { seen[a & 63]++; out[0] = a; last++; return -1; }
    switch (kind) {
    case 0: if (a > 9) { seen[a & 63] += b; out[0] = a * b; last++; return a + 4; } break;
    case 1: if (b > 9) { seen[b & 63] += b; out[1] = a * b; last++; return b + 4; } break;
    case 2: if (a < 9) { seen[b & 63] += a; out[0] = a - b; last++; return a + 9; } break;
    case 5: if (b < 9) { seen[a & 63] += a; out[1] = a - b; last++; return b + 9; } break;
    case 9: { seen[a & 63]++; out[1] = b; last++; return -1; }
    case 12: { seen[b & 63]++; out[0] = b; last++; return -1; }
    }
    last--;
    return 0;
}

int table(unsigned k) {
    switch (k) {
    case 1: return overridden(3); case 2: return overridden(9); case 3: return overridden(11);
    case 4: return placed(2); case 5: return placed(8); case 6: return placed(1);
    }
    for (unsigned i = 0; i < k; i++) seen[i & 63] += (int)(i * k);
    return seen[k & 63];
}

typedef struct { void *(*take)(size_t); void (*give)(void *); void *(*again)(void *, size_t); } Hooks;
void *malloc(size_t);
void *realloc(void *, size_t);
void free(void *);
Hooks hooks = {malloc, free, realloc};
void hook(Hooks *given) {
    if (given == NULL) { hooks.take = malloc; hooks.give = free; hooks.again = realloc; return; }
    hooks.take = malloc;
    if (given->take != NULL) hooks.take = given->take;
    hooks.give = free;
    if (given->give != NULL) hooks.give = given->give;
    hooks.again = NULL;
    if ((hooks.take == malloc) && (hooks.give == free)) hooks.again = realloc;
}

const char *day(unsigned number) {
    switch (number) {
    case 0: return "Monday"; case 1: return "Tuesday"; case 2: return "Wednesday"; case 3: return "Thursday";
    case 4: return "Friday"; case 5: return "Saturday"; case 6: return "Sunday"; default: return "none";
    }
}

int main(void) {
    int out[2] = {0, 0};
    Call call = other;
    long sum = machine("0314159202");
    for (int kind = 0; kind < 14; kind++)
        for (int a = 0; a < 20; a++)
            for (int b = 0; b < 20; b++) {
                sum = sum * 31 + choose(kind, a, b, out);
                sum += out[0] ^ (out[1] << 3) ^ call(a) ^ table((unsigned)b);
            }
    printf("%lx %d %s\n", sum, last, day((unsigned)sum & 7));
    return 0;
}
"""


@pytest.fixture(scope="module")
def module() -> str:
    newest = int(open_backend().version.partition(".")[0])
    try:
        compiler = find_compiler(newest)
    except TargetError as error:
        pytest.skip(str(error))
    return compiler.to_ir("f.c", ("-Xclang", "-disable-llvm-passes"), "Oz", source=SOURCE)


@pytest.fixture(scope="module")
def improved(module: str) -> SizeResult:
    return improve_module(module, seconds=60, evaluations=300)


def text_of(code: bytes | str) -> str:
    module = open_backend().parse(code)
    try:
        return module.text()
    finally:
        module.close()


def code_of(code: bytes | str, pipeline: str = "") -> tuple[bytes, int]:
    module = open_backend().parse(code)
    try:
        module.run(pipeline)
        return module.object_code(), module.text_bytes()
    finally:
        module.close()


def test_a_module_becomes_smaller_than_oz(module: str, improved: SizeResult) -> None:
    assert improved.baseline == code_of(module, "default<Oz>")[1]
    assert improved.total == code_of(improved.bitcode)[1] < improved.baseline
    saved = sum(gain.before - gain.after for gain in improved.functions)
    assert saved == improved.baseline - improved.total
    assert all(gain.after != gain.before for gain in improved.functions)
    assert improved.functions[0].passes
    assert improved.evaluations > len(improved.functions)


def heads(code: bytes | str) -> list[str]:
    """Give what the module says of the symbols that others see, without values and numbers."""
    lines = re.findall(r"^(?:define [^{]*|@[^\n]*)", text_of(code), re.MULTILINE)
    return sorted(
        re.sub(r"\(.*|[#!]\d+", "", line) for line in lines if not re.search("internal|private", line)
    )


def test_symbols_stay_what_they_are(module: str, improved: SizeResult) -> None:
    optimised = open_backend().parse(module)
    optimised.run("default<Oz>")
    text = text_of(improved.bitcode)
    assert heads(improved.bitcode) == heads(optimised.text())
    optimised.close()
    assert "optnone" not in text
    assert 'section "special"' in text
    assert "@other = " in text


def test_the_program_answers_as_before(module: str, improved: SizeResult, tmp_path: Path) -> None:
    linker = shutil.which("cc") or shutil.which("clang-22")
    if linker is None:
        pytest.skip("no linker")
    said: list[str] = []
    for name, code in (("before", code_of(module)[0]), ("after", code_of(improved.bitcode)[0])):
        (tmp_path / f"{name}.o").write_bytes(code)
        subprocess.run([linker, tmp_path / f"{name}.o", "-o", tmp_path / name], check=True)
        said.append(subprocess.run([tmp_path / name], check=True, capture_output=True, text=True).stdout)
    assert said[0] == said[1]


def test_instructions_are_counted_alike(module: str) -> None:
    found = improve_module(module, "instructions", seconds=20, evaluations=200)
    assert found.total <= found.baseline
    assert 0 < found.evaluations < 400
    made = open_backend().parse(found.bitcode)
    assert made.instructions() == found.total
    made.close()


def test_progress_is_told(module: str) -> None:
    told: list[ModuleProgress] = []
    found = improve_module(module, seconds=20, evaluations=60, progress=told.append)
    assert [each.evaluations for each in told] == sorted(each.evaluations for each in told)
    assert len(told) > 2
    assert told[-1].evaluations == found.evaluations
    assert told[-1].total == found.total


def test_no_time_gives_what_oz_gives(module: str) -> None:
    found = improve_module(module, seconds=0)
    assert (found.total, found.functions, found.evaluations) == (found.baseline, (), 0)
    assert code_of(found.bitcode)[1] == found.baseline


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(PlanishError, match="modules have no objective 'size'"):
        improve_module("", "size")
    with pytest.raises(IRError, match="1:1: expected top-level entity"):
        improve_module("no module")


class Kept:
    """Remembers within a test."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.held.get(key)

    def put(self, key: str, value: str) -> None:
        self.held[key] = value


def test_what_was_found_is_remembered(module: str) -> None:
    kept = Kept()
    first = improve_module(module, seconds=20, evaluations=100, remember=kept)
    again = improve_module(module, seconds=20, evaluations=100, remember=kept)
    assert again.evaluations == 0
    assert (again.bitcode, again.total, again.functions) == (first.bitcode, first.total, first.functions)
    assert (again.baseline, again.recipe) == (first.baseline, first.recipe)


def test_a_longer_search_goes_on_from_a_shorter_one(module: str) -> None:
    kept = Kept()
    first = improve_module(module, seconds=20, evaluations=200, remember=kept)
    more = improve_module(module, seconds=20, evaluations=201, remember=kept)
    assert more.evaluations > 0
    assert more.total <= first.total
    less = improve_module(module, seconds=10, evaluations=50, remember=kept)
    assert (less.evaluations, less.recipe) == (0, more.recipe)


def test_a_search_that_load_cuts_short_is_gone_on_with(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, code = Kept(), module.encode()
    monkeypatch.setattr(budget, "_PATIENCE", 0.02)  # as if others had the processor
    first = make_smaller(code, 1.0, remember=kept)
    monkeypatch.setattr(budget, "_PATIENCE", 1e9)  # whatever else runs on this machine
    assert first is not None
    assert first.seconds < 1.0
    second = make_smaller(code, 1.0, remember=kept)
    assert second is not None
    assert (second.seconds, second.evaluations > 0) == (1.0, True)
    third = make_smaller(code, 1.0, remember=kept)
    assert third is not None
    assert (third.seconds, third.evaluations, third.recipe) == (1.0, 0, second.recipe)


def test_a_search_goes_on_behind_lists_that_were_tried() -> None:
    none = cast("CModule", None)
    one, other = ModuleChunk(none, ("f",), 9), ModuleChunk(none, ("g",), 8)
    fresh, good = list(islice(jobs([one, other]), 20)), ("dce",)
    again = list(islice(jobs([one, other], [good], 7), 15))
    assert again == [ListJob(good, one), ListJob(good, other), *fresh[7:]]


def test_what_is_remembered_wrongly_is_searched_again(module: str) -> None:
    kept = Kept()
    improve_module(module, seconds=20, evaluations=20, remember=kept)
    for text in ("", "[]", '{"budget": 3}'):
        kept.held.update(dict.fromkeys(kept.held, text))
        assert improve_module(module, seconds=20, evaluations=20, remember=kept).evaluations


def test_without_time_a_module_is_made_once(module: str) -> None:
    found = make_smaller(module.encode(), seconds=0)
    assert found
    assert found.evaluations == 0
    assert found.recipe.lists
    assert found.bitcode == remake(module, found.recipe, "text_bytes").bitcode
    assert code_of(found.bitcode)[1] < code_of(module)[1]


def test_a_crash_costs_one_evaluation(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.levels.llvm.modules.function_lists.print_pipeline", _crashing)
    found = improve_module(module, seconds=20, evaluations=300)
    assert found.total < found.baseline


def _crashing(passes: Sequence[str]) -> str:
    # LLVM ends the process at this loop pass in such a manager.
    return "loop(licm)" if "function-simplification<Oz>" in passes else print_pipeline(passes)


INLINED = """
define internal i32 @callee(i32 %x) minsize optsize {
  %y = mul i32 %x, 77
  %z = xor i32 %y, 3
  ret i32 %z
}

define internal i32 @unused_afterwards(i32 %x) minsize optsize {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}

define weak i32 @weak(i32 %x) minsize optsize {
  ret i32 1
}

define i32 @one(i32 %x) minsize optsize {
  %y = call i32 @unused_afterwards(i32 %x)
  %z = call i32 @weak(i32 %y)
  ret i32 %z
}

define i32 @two(i32 %x) minsize optsize {
  %y = call i32 @callee(i32 %x)
  ret i32 %y
}
"""


def test_inlining_is_tried_where_callers_are_apart() -> None:
    module = single(open_backend().parse(INLINED))
    calls = Calls(module.definitions())
    callers = calls.callers()
    assert callers["callee"] == {"unused_afterwards": 1, "two": 1}
    never, always = calls.free()
    assert never >= {"callee", "weak"}
    assert "weak" not in always
    tried = InliningSearch(callers, never, always, {"one": 20, "two": 10, "weak": 10})
    given = tried.next()
    assert given
    flips, inlining = given
    assert set(flips) <= {("callee", "noinline"), ("unused_afterwards", "noinline"), ("weak", "alwaysinline")}
    assert dict(inlining) == dict(flips)
    tried.tell(flips, {"one": 12, "two": 5, "callee": 8, "weak": 10})
    assert tried.total == 12 + 5 + 8 + 10
    assert tried.inlining == inlining
    module.close()


CALLERS = {"a": Counter({"x": 1}), "b": Counter({"y": 1}), "x": Counter[str](), "y": Counter[str]()}


def apart() -> InliningSearch:
    return InliningSearch(CALLERS, frozenset("ab"), frozenset(), {"x": 50, "y": 50})


def test_what_is_worse_when_it_is_made_together_is_tried_alone() -> None:
    tried = apart()
    both = (("a", "noinline"), ("b", "noinline"))
    assert tried.next() == (both, both)
    tried.tell(both, {"x": 20, "y": 20, "a": 20, "b": 20})
    assert tried.next() == ((), both)
    assert tried.next() is None
    tried.tell((), {"x": 60, "y": 50, "a": 20, "b": 20})
    assert (tried.inlining, tried.total) == ((), 100)
    assert tried.next() == (both[:1], both[:1])
    tried.tell(both[:1], {"x": 20, "y": 50, "a": 20})
    assert (tried.inlining, tried.total, tried.is_confirmed) == (both[:1], 90, True)
    assert tried.next() == (both[1:], both)
    tried.tell(both[1:], {"x": 60, "y": 20, "a": 20, "b": 20})
    assert (tried.inlining, tried.total) == (both[:1], 90)


def test_what_grows_below_is_counted() -> None:
    callers = {**CALLERS, "below": Counter({"x": 1})}
    tried = InliningSearch(callers, frozenset("ab"), frozenset(), {"x": 50, "y": 50, "below": 10})
    both = (("a", "noinline"), ("b", "noinline"))
    assert tried.next() == (both, both)
    tried.tell(both, {"x": 20, "y": 20, "a": 20, "b": 20, "below": 40})
    assert tried.inlining == both[1:]


def test_attributes_of_inlining_do_not_stay(module: str) -> None:
    made = remake(
        module,
        ModuleRecipe("default<Oz>", (), "", (("plain", "noinline"), ("table", "alwaysinline"))),
        "text_bytes",
    )
    assert "@plain(" in text_of(made.bitcode)
    assert "call fastcc i32 @plain" in text_of(made.bitcode) or "call i32 @plain" in text_of(made.bitcode)
    assert not re.search(r"attributes #\d+ = \{[^}]*(noinline|alwaysinline)", text_of(made.bitcode))


def code_section(file: Path) -> bytes:
    data = file.read_bytes()
    (text,) = (section for section in elf.sections(data) if section.name == ".text")
    return data[text.offset : text.offset + text.size]


def test_opt_alone_makes_it_again(module: str, improved: SizeResult, tmp_path: Path) -> None:
    major = open_backend().version.partition(".")[0]
    opt, llc = shutil.which(f"opt-{major}"), shutil.which(f"llc-{major}")
    if opt is None or llc is None:
        pytest.skip("no opt")
    export_improved(module, improved, tmp_path)
    expected = code_section(tmp_path / "optimised.o")
    (tmp_path / "optimised.o").unlink()
    tools = {"OPT": opt, "LLC": llc, "PATH": "/usr/bin:/bin"}
    done = subprocess.run([tmp_path / "repeat.sh"], check=True, env=tools, capture_output=True)
    assert done.stderr == b""
    # Names of values in the text may be other ones, and llc lists constructors in another section.
    assert code_section(tmp_path / "optimised.o") == expected


def test_another_llvm_than_its_own_is_told(module: str, improved: SizeResult, tmp_path: Path) -> None:
    export_improved(module, improved, tmp_path)
    other = {"OPT": "true", "LLC": "true", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([tmp_path / "repeat.sh"], check=True, env=other, capture_output=True, text=True)
    major = open_backend().version.partition(".")[0]
    assert done.stderr.startswith(f"true is none of LLVM {major}; where it fails, name one: OPT=opt-{major}")


def test_both_measures_of_each_function(improved: SizeResult) -> None:
    rows = compare_measures(improved)
    assert sum(row.bytes_before for row in rows) - sum(row.bytes_after for row in rows) == (
        improved.baseline - improved.total
    )
    assert all(row.instructions_before for row in rows if row.bytes_before)
