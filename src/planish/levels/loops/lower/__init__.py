"""Lowering: from a schedule to the loop tree that code generators take."""
