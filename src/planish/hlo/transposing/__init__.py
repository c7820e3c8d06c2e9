"""Transposes that move down a function until they meet their inverses; no answer changes."""

from planish.hlo.transposing.rules import MOVED_PAST, Turned, turned
from planish.hlo.transposing.turned_values import Order, composed, inverse, is_free

__all__ = ["MOVED_PAST", "Order", "Turned", "composed", "inverse", "is_free", "turned"]
