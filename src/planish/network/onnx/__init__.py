"""Translation of ONNX: rules of operators, and control flow."""
