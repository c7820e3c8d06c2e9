"""Import of StableHLO modules, such as those of JAX, as ONNX models."""
