"""Modules of LLVM IR for tests, and what of this machine they need."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from planish.core import TargetError
from planish.levels.llvm.bindings.libraries import open_bindings
from planish.levels.llvm.clang import find_compiler
from planish.levels.llvm.execution import find_linker

SUM = """\
source_filename = "sum.c"

define i32 @sum(ptr %p, i32 %n) {
entry:
  %total = alloca i32
  %i = alloca i32
  store i32 0, ptr %total
  store i32 0, ptr %i
  br label %head

head:
  %at = load i32, ptr %i
  %more = icmp slt i32 %at, %n
  br i1 %more, label %body, label %end

body:
  %place = getelementptr i32, ptr %p, i32 %at
  %value = load i32, ptr %place
  %before = load i32, ptr %total
  %after = add i32 %before, %value
  store i32 %after, ptr %total
  %next = add i32 %at, 1
  store i32 %next, ptr %i
  br label %head

end:
  %result = load i32, ptr %total
  ret i32 %result
}

define internal i32 @twice(i32 %x) {
  %slot = alloca i32
  store i32 %x, ptr %slot
  %one = load i32, ptr %slot
  %other = load i32, ptr %slot
  %both = add i32 %one, %other
  ret i32 %both
}

define i32 @four(i32 %x) {
  %two = call i32 @twice(i32 %x)
  %four = call i32 @twice(i32 %two)
  ret i32 %four
}
"""

COUNTED = """\
source_filename = "counted.c"

declare i32 @bump() memory(none) nounwind willreturn

define i32 @counted() {
  %one = call i32 @bump()
  %two = call i32 @bump()
  %sum = add i32 %one, %two
  ret i32 %sum
}
"""
"""It says that `bump` has no effect, which is a lie: optimized, it counts once and not twice."""

HARNESS = """\
#include <stdio.h>
static int count;
int bump(void) { return ++count; }
int counted(void);
int main(void) { printf("%d\\n", counted()); return 0; }
"""

ECHO = """\
@text = private constant [4 x i8] c"%s\\0A\\00"
declare i32 @printf(ptr, ...)

define i32 @main(i32 %count, ptr %words) {
  %slot = alloca i32
  store i32 %count, ptr %slot
  %place = getelementptr ptr, ptr %words, i32 1
  %word = load ptr, ptr %place
  %printed = call i32 (ptr, ...) @printf(ptr @text, ptr %word)
  %same = load i32, ptr %slot
  ret i32 %same
}
"""
"""Prints its first argument; its exit code is the number of its words."""

ASSEMBLY = """\
define i32 @f(i32 %x) {
  %slot = alloca i32
  store i32 %x, ptr %slot
  %value = load i32, ptr %slot
  %same = call i32 asm sideeffect "TEXT", "=r,0"(i32 %value)
  ret i32 %same
}
"""
"""Inline assembly: put an instruction where TEXT stands."""


def require_linker() -> None:
    """Skip the test where nothing links; fail it where everything should be installed."""
    _require(find_linker)


def require_compiler() -> None:
    """Skip the test where nothing compiles C to IR; fail it where everything should be installed."""
    newest = int(open_bindings().version.partition(".")[0])
    _require(lambda: find_compiler(newest))


def _require(find: Callable[[], object]) -> None:
    try:
        find()
    except TargetError as error:
        lacking(str(error))


def lacking(reason: str) -> None:
    """Skip the test; where everything should be installed, fail it."""
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
