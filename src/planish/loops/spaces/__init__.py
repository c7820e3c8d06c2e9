"""The spaces of schedules, and from a candidate to its schedule."""

from planish.loops.spaces.cursor import CursorSpace
from planish.loops.spaces.resolve import STEPS, resolve
from planish.loops.spaces.template import TemplateSpace

__all__ = ["STEPS", "CursorSpace", "TemplateSpace", "resolve"]
