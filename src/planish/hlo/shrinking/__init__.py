"""Running a network on fewer pixels: a value keeps a part of its picture, and all that follows fits it."""

from planish.hlo.shrinking.shrink import Smaller, pictured, shrunk

__all__ = ["Smaller", "pictured", "shrunk"]
