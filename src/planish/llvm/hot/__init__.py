"""Whole programs made faster: where they spend their time, function by function."""

from planish.llvm.hot.export import export_faster, manifest
from planish.llvm.hot.faster import Faster, Progress, Share
from planish.llvm.hot.making import Made
from planish.llvm.hot.search import speed_up

__all__ = ["Faster", "Made", "Progress", "Share", "export_faster", "manifest", "speed_up"]
