"""Formatting of numbers and texts for people."""

import math
from datetime import UTC, datetime

from planish.core.task import Objective
from planish.core.verdicts import Ratio

_TIMES = ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs"), (0.0, 1e9, "ns"))
_TIMES_SIGN = "\N{MULTIPLICATION SIGN}"
_WIDE = 1000.0
"""Multiple of 1, in each direction, up to which an interval is shown: beyond it its ends mean nothing."""
MINUTE_S = 60
HOUR_S = 3600


def scale(size: float, unit: str) -> tuple[float, str]:
    """Choose the unit that a quantity of this size is written in.

    Returns:
        What to multiply by, and the unit: seconds become ms, µs or ns; others stay as they are.
    """
    if unit != "s" or size == 0 or not math.isfinite(size):
        return 1.0, unit
    return next((factor, name) for least, factor, name in _TIMES if abs(size) >= least)


def number(value: float) -> str:
    """Write a number with four significant digits, greater ones to the whole."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "-∞" if value < 0 else "∞"
    if abs(value) >= 1e4:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.4g}"
    return f"{value:#,.4g}".rstrip(".") if value else "0"


def amount(value: float, unit: str) -> str:
    """Write a quantity with its unit: seconds scaled (`12.34 µs`), whole numbers of anything else in full."""
    whole = unit != "s" and math.isfinite(value) and value == round(value) and abs(value) < 1e15
    factor, name = scale(value, unit)
    return f"{value:,.0f} {name}".rstrip() if whole else f"{number(value * factor)} {name}".rstrip()


def duration(seconds: float) -> str:
    """Write how long something took, to three digits: `3.20 ms`, `4 min 5 s`, `2 h 7 min`."""
    if seconds < 2 * MINUTE_S or not math.isfinite(seconds):
        factor, name = scale(seconds, "s")
        return f"{seconds * factor:#.3g}".rstrip(".") + f" {name}" if seconds else "0 s"
    if seconds < 2 * HOUR_S:
        minutes, rest = divmod(round(seconds), MINUTE_S)
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / MINUTE_S), 60)
    return f"{hours} h {minutes} min"


def multiple(ratio: float) -> str:
    """Write a ratio: `1.79×`, with a digit more where it is nearly 1."""
    if not math.isfinite(ratio):
        return f"{number(ratio)}{_TIMES_SIGN}"
    decimals = 3 if abs(ratio - 1) < 0.1 else 2 if ratio < 10 else 1 if ratio < 100 else 0
    return (f"{ratio:,.{decimals}f}" if ratio >= 0.1 else f"{ratio:.2g}") + _TIMES_SIGN


def interval(gain: Ratio) -> str:
    """Write the interval of a gain: `1.09× to 1.62×`, or `<0.001× to >1,000×` where it is wider than that."""
    low, high = multiple(gain.low), multiple(gain.high)
    if gain.low < 1 / _WIDE and gain.high >= 1:
        low = f"<{multiple(1 / _WIDE)}"
    if gain.high > _WIDE and gain.low <= 1:
        high = f">{multiple(_WIDE)}"
    return f"{low} to {high}"


def when(seconds: float | None) -> str:
    """Write a time since the epoch, in UTC."""
    return "—" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def label(objective: Objective) -> str:
    """Name an objective without its unit: `time` for `time_s`."""
    return objective.name.removesuffix(f"_{objective.unit}")


def saved(gain: float) -> str:
    """Write what a gain saves of a quantity of which less is better: `3.92 %`; a loss is negative."""
    return f"{100 * (1 - 1 / gain):.2f} %" if gain else "-∞ %"


def is_count(objective: Objective) -> bool:
    """Return whether it is a count of something that should be less, of which the saving is shown."""
    return objective.exact and objective.direction == "down"


def saving(objective: Objective) -> str:
    """Return the heading of a column of what `improvement` returns."""
    return "saved" if is_count(objective) else "gain"


def improvement(gain: float, objective: Objective) -> str:
    """Write a gain over the baseline: `1.79×`, or of a count what it saves, `3.92 %`."""
    return saved(gain) if is_count(objective) else multiple(gain)


def title(program: str) -> str:
    """Return the first line of a program's canonical text, which names it; without the sign of a comment."""
    return program.strip().partition("\n")[0].lstrip(";/# ")


def words(objective: Objective) -> dict[str, str]:
    """Return a comparison's verdicts in words that fit the objective: times are "faster"."""
    good, bad = "better", "worse"
    if objective.unit == "s":
        good, bad = "faster", "slower"
    elif is_count(objective):
        good, bad = "smaller", "larger"
    return {"better": good, "worse": bad}


def verdict_word(verdict: str, objective: Objective) -> str:
    """Write a verdict in the words of an objective: `faster`, `same`, `slower`, `undecided`, `failed`."""
    return words(objective).get(verdict, verdict)


def outcome_words(objective: Objective, verdict: str) -> str:
    """Return a comparison's verdict by one of several objectives: `faster`, `same time`, `more error`."""
    name = label(objective)
    if verdict not in ("better", "worse", "same"):
        return verdict
    if verdict == "same":
        return f"same {name}"
    if objective.unit == "s":
        return words(objective)[verdict]
    return f"{'less' if (verdict == 'better') == (objective.direction == 'down') else 'more'} {name}"


def shorten(text: str, limit: int) -> str:
    """Cut a text, and say how much is missing."""
    missing = len(text) - limit
    return text if missing <= 0 else f"{text[:limit]}\n… ({missing:,} characters more)"


_CONTROL = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Replace control characters, by which a worker, a program or a stored run would steer the terminal."""
    return text.translate(_CONTROL)


def one_line(text: str, most: int = 100) -> str:
    """Put a text that a program printed on one line, without what would steer the terminal."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= most else f"{words[: most - 1]}…"
