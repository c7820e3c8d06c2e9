"""What a user waits for before anything happens: `import planish` and `planish --help`.

Targets: 100 and 300 ms, the interpreter's own start left out of the first. `python benchmarks/startup.py`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 15


def median_ms(*command: str) -> float:
    """Run a command several times; gives its median milliseconds."""
    samples: list[float] = []
    for _ in range(RUNS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def main() -> None:
    """Print the table."""
    bare = median_ms(sys.executable, "-c", "pass")
    imported = median_ms(sys.executable, "-c", "import planish")
    shown = median_ms(str(Path(sys.executable).with_name("planish")), "--help")
    print(f"python alone    {bare:>6.0f} ms")
    print(f"import planish  {imported - bare:>6.0f} ms more (target 100)")
    print(f"planish --help  {shown:>6.0f} ms in all (target 300)")


if __name__ == "__main__":
    main()
