"""Whole networks: an ONNX model becomes one shared library."""

from planish.network.compiler import compile  # noqa: A004

__all__ = ["compile"]
