"""Python programs in processes of their own."""

import subprocess
import sys
import textwrap


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program; its arguments are in `sys.argv`."""
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
