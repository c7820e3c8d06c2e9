"""Spaces of schedules, and the replay of a candidate to its schedule."""

from planish.levels.loops.space.cursor import STEPS, AnnotationSpace, CursorSpace, resolve
from planish.levels.loops.space.facts import machine_of
from planish.levels.loops.space.template import TemplateSpace

__all__ = ["STEPS", "AnnotationSpace", "CursorSpace", "TemplateSpace", "machine_of", "resolve"]
