"""Applying rewriting passes to ONNX models."""

from planish.graph.rewriting.apply import RewriteError, apply_pass, rewrite
from planish.graph.rewriting.intent import NEEDS_INPUTS
from planish.graph.rewriting.model_identity import Counts, identity, node_counts

__all__ = ["NEEDS_INPUTS", "Counts", "RewriteError", "apply_pass", "identity", "node_counts", "rewrite"]
