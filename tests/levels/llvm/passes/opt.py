"""LLVM's own `opt`, the reference for what a pipeline is."""

import os
import shutil
import subprocess

import pytest

LOOPS = """
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define i32 @total(ptr %p, i32 %n) {
entry:
  %sum = alloca i32
  store i32 0, ptr %sum
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %latch ]
  br label %inner
inner:
  %j = phi i32 [ 0, %outer ], [ %j.next, %inner ]
  %at = getelementptr i32, ptr %p, i32 %j
  %x = load i32, ptr %at
  %old = load i32, ptr %sum
  %new = add i32 %old, %x
  store i32 %new, ptr %sum
  %j.next = add i32 %j, 1
  %more = icmp slt i32 %j.next, %n
  br i1 %more, label %inner, label %latch
latch:
  %i.next = add i32 %i, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer, label %end
end:
  %result = load i32, ptr %sum
  ret i32 %result
}

define i32 @twice(ptr %p, i32 %n) {
  %a = call i32 @total(ptr %p, i32 %n)
  %b = call i32 @total(ptr %p, i32 %n)
  %c = add i32 %a, %b
  ret i32 %c
}
"""
"""A module with nested loops, a stack slot and calls."""


def need_opt() -> str:
    """Return the path of `opt` of the catalogue's LLVM; without it the test is skipped, in CI it fails."""
    path = shutil.which("opt-22")
    if path is None:
        reason = "opt is not installed: apt-get install llvm-22"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return path


def run_opt(path: str, pipeline: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a pipeline over a small module."""
    command = [path, f"-passes={pipeline}", "-S", *options, "-o", "-"]
    return subprocess.run(command, input=LOOPS, capture_output=True, text=True, check=False, timeout=240)
