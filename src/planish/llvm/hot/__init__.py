"""Whole programs made faster: where they spend their time, function by function."""

from planish.llvm.hot.export import export_faster, manifest
from planish.llvm.hot.faster import Faster, HotProgress, Share
from planish.llvm.hot.hot_search import speed_up
from planish.llvm.hot.making import HotBuild

__all__ = ["Faster", "HotBuild", "HotProgress", "Share", "export_faster", "manifest", "speed_up"]
