"""GEVO-ML, 6.1: evolve MobileNet's prediction on CIFAR-10, for time and for error.

    python experiments/gevo_ml/prediction.py --data FOLDER_WITH_CIFAR10 [--seconds 3600]

Prints the front; the time at no more than two points of final accuracy lost, beside the paper's and against
both baselines; and random search with as many evaluations.
"""

from study import best, gain, options, show, study

PAPER = (39.59, 20.79, 0.912, 0.893)
"""Seconds and accuracy of the original, and of what evolution found within two points (figure 4a)."""
LOSS = 0.02


def main() -> None:
    """Run the experiment."""
    found = study(options(__doc__, "mobilenet.mlir"))
    show(found)
    result = found.evolved
    compared = result.comparison
    assert compared is not None
    error = compared.baseline.scores.get("error_final", 1.0)
    fastest = best(
        result,
        lambda m: "error_final" in m.scores and m.scores["error_final"] <= error + LOSS,
        lambda m: -gain(m),
    )
    print("\n| at no more than 2 points of final accuracy lost | times faster | accuracy |\n|---|---|---|")
    print(f"| paper | {PAPER[0] / PAPER[1]:.2f} | {PAPER[2]:.1%} to {PAPER[3]:.1%} |")
    if fastest is None:
        print("| ours | nothing on the front | |")
        return
    accuracy, times = 1 - fastest.scores["error_final"], {"the best honest form": gain(fastest)}
    if compared.reference:
        slower = compared.reference.measured["time_s"].median / compared.baseline.measured["time_s"].median
        times[compared.reference.name] = slower * gain(fastest)
    for name, faster in times.items():
        print(f"| ours, against {name} | {faster:.2f} | {1 - error:.1%} to {accuracy:.1%} |")


if __name__ == "__main__":
    main()
