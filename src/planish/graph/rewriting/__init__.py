"""Applying rewriting passes to ONNX models."""

from planish.graph.rewriting.apply import RewriteError, apply_pass, rewrite
from planish.graph.rewriting.model_identity import Counts, identity, node_counts

__all__ = ["Counts", "RewriteError", "apply_pass", "identity", "node_counts", "rewrite"]
