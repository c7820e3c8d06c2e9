"""Whole modules made smaller function by function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import cast

import pytest

from planish.core import TargetError
from planish.levels.llvm.backend import open_backend
from planish.levels.llvm.backend.c_definitions import Calls
from planish.levels.llvm.backend.c_module import CModule
from planish.levels.llvm.clang import find_compiler
from planish.levels.llvm.modules import (
    budget,
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


class Kept:
    """Remembers within a test."""

    def __init__(self) -> None:
        self.held: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self.held.get(key)

    def put(self, key: str, value: str) -> None:
        self.held[key] = value


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


def test_without_time_a_module_is_made_once(module: str) -> None:
    found = make_smaller(module.encode(), seconds=0)
    assert found
    assert found.evaluations == 0
    assert found.recipe.lists
    assert found.bitcode == remake(module, found.recipe, "text_bytes").bitcode
    assert code_of(found.bitcode)[1] < code_of(module)[1]


def test_a_crash_costs_one_evaluation(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planish.levels.llvm.modules.function_lists.print_pipeline", _crashing)
    found = make_smaller(module.encode(), seconds=20, evaluations=300)
    assert found
    assert code_of(found.bitcode)[1] < code_of(module, "default<Oz>")[1]


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
