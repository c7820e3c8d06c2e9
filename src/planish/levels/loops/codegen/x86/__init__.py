"""Machine code for x86-64, written directly: LoopNest (thesis 3.4) in Python."""
