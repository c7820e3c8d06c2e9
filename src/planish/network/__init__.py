"""Whole networks: an ONNX model becomes one shared library."""
