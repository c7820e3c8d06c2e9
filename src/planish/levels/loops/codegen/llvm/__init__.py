"""The portable code generator: explicit vector code for any processor that LLVM knows."""

from planish.levels.loops.codegen.llvm.compile import compile_tree, emit, emit_object
from planish.levels.loops.codegen.llvm.jit import Machine, describe, host_machine

__all__ = ["Machine", "compile_tree", "describe", "emit", "emit_object", "host_machine"]
