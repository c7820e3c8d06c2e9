"""The level `graph`: ONNX models, whose candidates are ordered selections of graph passes."""
