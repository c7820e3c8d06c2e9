"""Callbacks of a run: early stopping, and loggers for MLflow and Weights & Biases.

A callback is called as `callback(run, trial)` after each trial is stored:

    import planish

    def show(run, trial):
        print(run.trials, run.best_value)

    planish.tune("C[m,n] += A[m,k] * B[k,n]", size={"m": 64, "n": 64, "k": 64}, callbacks=[show])

A run that is resumed calls it first for the trials that it has: their `cached` is True, as is that of
outcomes which another run has stored. So a callback observes the same trials in one call of `tune` as in
several. An exception of a callback ends the run and is raised by `tune`; what was measured is stored.
"""

from planish.tuning.callbacks import (
    ActiveRun,
    Callback,
    EarlyStopping,
    MLflowLogger,
    TrialCallback,
    WandbLogger,
)

__all__ = ["ActiveRun", "Callback", "EarlyStopping", "MLflowLogger", "TrialCallback", "WandbLogger"]
