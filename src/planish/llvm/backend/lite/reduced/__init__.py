"""What llvmlite's public interface offers of LLVM: about 40 transformations and the default pipelines."""

from planish.llvm.backend.lite.reduced.backend import ReducedBackend

__all__ = ["ReducedBackend"]
