"""Whole networks: an ONNX model or a StableHLO module becomes one shared library."""
