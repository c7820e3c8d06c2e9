"""GEVO-ML, 6.2: evolve the training step of two fully connected layers on MNIST, for time and for error.

    python experiments/gevo_ml/training.py --data FOLDER_WITH_MNIST [--seconds 3600]

Prints the front; the error that is reached at no more time than the original's, beside the paper's, by the
member with the least error on the validation data after whole trainings; and random search with as many
evaluations.
"""

from study import best, options, show, study

PAPER = (0.0862, 0.0374)
"""The error of the original, and of what evolution found at no more time (figure 4b)."""


def main() -> None:
    """Run the experiment."""
    found = study(options(__doc__, "2fcnet.mlir"))
    show(found)
    result = found.evolved
    least = best(
        result,
        lambda m: "error_validation" in m.scores and m.measured["time_s"].verdict != "worse",
        lambda m: m.scores["error_validation"],
    )
    print("\n| at no more time than the original | original | evolved |\n|---|---|---|")
    print(f"| paper: error | {PAPER[0]:.2%} | {PAPER[1]:.2%} |")
    if least is None or result.baseline is None:
        print("| ours | | nothing is as fast |")
        return
    before = result.baseline.measured["error"].median
    print(f"| ours: error on the search's data | {before:.2%} | {least.measured['error'].median:.2%} |")
    for part in ("validation", "final"):
        first, last = (scores[f"error_{part}"] for scores in (result.baseline.scores, least.scores))
        print(f"| ours: error on the {part} data | {first:.2%} | {last:.2%} |")


if __name__ == "__main__":
    main()
