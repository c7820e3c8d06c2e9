"""Fuzz the code generators: random programs, random candidates, every back end, an independent answer.

`PYTHONPATH=src:tests python3 -m fuzz --pairs 20000 --jobs 2` needs NumPy and iced-x86, and llvmlite for the
portable back end. It prints a table, and ends with 1 if a kernel was wrong or crashed; what failed is made as
small as possible and written into `tests/fuzz/cases`, which the tests try again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from fuzz.candidates import KINDS
from fuzz.case import Case, judge
from fuzz.crew import try_cases, words_of
from fuzz.draw import PROGRAMS
from fuzz.shrink import fails, shrink
from fuzz.worker import Plan, Tried, work
from planish.loops.codegen.x86 import cpu

CASES = Path(__file__).parent / "cases"
MOST_SHRUNK = 10
"""Failures that are made smaller; more are most likely the same ones."""
INPUTS = ("both", "plain", "special")
VERDICTS = ("right", "wrong", "crashed", "refused")


def main() -> int:
    """Run the program; gives its exit code."""
    options = _options()
    if options.worker:
        work(*words_of(options.worker))
    if options.replay:
        return _replay(options.replay)
    backends = options.backend or _backends()
    counts: Counter[tuple[str, str, str]] = Counter()
    failures: list[Tried] = []
    seconds = options.minutes * 60
    plan = Plan(options.seed, options.jobs, backends, options.inputs, options.programs)
    for tried in try_cases(plan, options.first, options.pairs, seconds):
        counts[tried.case.backend, tried.case.kind, tried.verdict] += 1
        if tried.verdict in ("wrong", "crashed"):
            failures.append(tried)
            _say(f"{tried.verdict}: {tried.message}\n{tried.case.to_json('')}")
        elif tried.verdict == "refused":
            _say(f"refused: {tried.message} ({tried.case.backend})")
    _table(counts)
    for tried in failures[:MOST_SHRUNK]:
        _keep(tried, options.cases)
    return int(bool(failures) or not counts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of programs, candidates and inputs")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first program; later ones go on from a run"
    )
    parser.add_argument("--pairs", type=int, default=20_000, help="programs with candidates to try")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to end in any case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--inputs", choices=INPUTS, default="both", help="special ones hold NaN, inf and 0")
    parser.add_argument("--programs", choices=[*PROGRAMS, ""], default="", help="only programs of this kind")
    parser.add_argument("--backend", action="append", help="only this one; may be given several times")
    parser.add_argument("--cases", type=Path, default=CASES, help="where failures are written")
    parser.add_argument("--replay", type=Path, nargs="+", help="try cases of these files, nothing else")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def _backends() -> list[str]:
    portable = ["portable"] if find_spec("llvmlite") else []
    return [*(f"x86-{name}" for name in cpu.supported()), *portable]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _table(counts: Mapping[tuple[str, str, str], int]) -> None:
    _say(f"{'back end':12}{'candidate':18}{'pairs':>8}" + "".join(f"{v:>9}" for v in VERDICTS[1:]))
    backends = sorted({backend for backend, _, _ in counts})
    for backend in backends:
        for kind in KINDS:
            _row(backend, kind, [counts.get((backend, kind, v), 0) for v in VERDICTS])
    _row("all", "", [sum(n for (_, _, v), n in counts.items() if v == verdict) for verdict in VERDICTS])


def _row(backend: str, kind: str, numbers: list[int]) -> None:
    _say(f"{backend:12}{kind:18}{sum(numbers):8}" + "".join(f"{n:9}" for n in numbers[1:]))


def _keep(tried: Tried, folder: Path) -> None:
    """Write a failure, as small as it gets."""
    if not fails(tried.case):
        _say(f"once only: {tried.message}\n{tried.case.to_json('')}")
        return
    small = shrink(tried.case)
    text = small.to_json(tried.message)
    path = folder / f"{sha256(text.encode()).hexdigest()[:12]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    _say(f"{path}:\n{text}")


def _replay(paths: list[Path]) -> int:
    wrong = 0
    for path in paths:
        case = Case.of_json(path.read_text())
        verdict, message = ("crashed", "") if fails(case) else judge(case)
        wrong += verdict in ("wrong", "crashed")
        _say(f"{path.name}: {verdict} {message}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
