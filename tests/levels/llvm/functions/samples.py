"""What the tests read: a module with nearly everything that can stand in one, and C and C++ sources."""

from pathlib import Path

DATA = Path(__file__).parent / "data"
ODD = (DATA / "odd.ll").read_text()
SOURCES = {"c": DATA / "sample.c", "c++": DATA / "sample.cc"}
