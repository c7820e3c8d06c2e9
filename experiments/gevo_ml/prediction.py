"""GEVO-ML, 6.1: evolve MobileNet's prediction on CIFAR-10, for time and for error.

    python experiments/gevo_ml/prediction.py --data FOLDER_WITH_CIFAR10 [--seconds 3600] [--seeds 3]

Prints the front of each seed; the time at no more than two points of final accuracy lost, beside the paper's
and against both baselines; random search with as many evaluations; and the mean and spread over the seeds.
"""

from study import best, gain, options, show, spread, studies

from planish.tuning.comparison import Finalist
from planish.tuning.result import Result

PAPER = (39.59, 20.79, 0.912, 0.893)
"""Seconds and accuracy of the original, and of what evolution found within two points (figure 4a)."""
LOSS = 0.02


def main() -> None:
    """Run the experiment."""
    faster: list[float] = []
    lost: list[float] = []
    for found in studies(options(__doc__, "mobilenet.mlir")):
        show(found)
        error = original_error(found.evolved)
        fastest = fastest_within(found.evolved, error + LOSS)
        show_fastest(found.evolved, error, fastest)
        if fastest is not None:
            faster.append(gain(fastest))
            lost.append(fastest.scores["error_final"] - error)
    spread({"times faster than the best honest form": faster}, ".2f")
    spread({"final accuracy lost": lost}, ".2%")


def original_error(result: Result) -> float:
    """Give the error of the unchanged module on the final images; 1 where it was not measured."""
    return 1.0 if result.baseline is None else result.baseline.scores.get("error_final", 1.0)


def fastest_within(result: Result, most: float) -> Finalist | None:
    """Find the fastest of the front whose error on the final images is no more than that."""
    return best(
        result,
        lambda m: "error_final" in m.scores and m.scores["error_final"] <= most,
        lambda m: -gain(m),
    )


def show_fastest(result: Result, error: float, fastest: Finalist | None) -> None:
    """Print it beside the paper's."""
    print("\n| at no more than 2 points of final accuracy lost | times faster | accuracy |\n|---|---|---|")
    print(f"| paper | {PAPER[0] / PAPER[1]:.2f} | {PAPER[2]:.1%} to {PAPER[3]:.1%} |")
    if fastest is None:
        print("| ours | nothing on the front | |")
        return
    accuracy, times = 1 - fastest.scores["error_final"], {"the best honest form": gain(fastest)}
    compared = result.comparison
    if compared is not None and compared.secondary_baseline:
        slower = (
            compared.secondary_baseline.measured["time_s"].median
            / compared.baseline.measured["time_s"].median
        )
        times[compared.secondary_baseline.name] = slower * gain(fastest)
    for name, number in times.items():
        print(f"| ours, against {name} | {number:.2f} | {1 - error:.1%} to {accuracy:.1%} |")


if __name__ == "__main__":
    main()
