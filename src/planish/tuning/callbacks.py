"""Callbacks of a run, early stopping and loggers, and the listener that calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from planish.core import Measured, Objective, TargetError, Trial
from planish.core.arguments import check_number, check_type, check_whole_number, wrong_argument
from planish.core.installation import install_command

if TYPE_CHECKING:
    from planish.tuning.recorder import Listener, Progress
    from planish.tuning.result import Result


class ActiveRun:
    """A run while it searches, as callbacks observe it.

    Args:
        progress: of the run.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.trials} trials, best {self.objective.name} {self.best_value}>"

    @property
    def id(self) -> str:
        """The id of the run in the store."""
        return self._progress.run_id

    @property
    def level(self) -> str:
        """The name of the level of the program."""
        return self._progress.task.level

    @property
    def program(self) -> str:
        """The canonical text of the program."""
        return self._progress.task.program.text

    @property
    def searcher(self) -> str:
        """The name of the searcher."""
        return self._progress.searcher

    @property
    def seed(self) -> int:
        """The seed of the search."""
        return self._progress.seed

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the search; the first leads."""
        return self._progress.task.objectives

    @property
    def objective(self) -> Objective:
        """The leading objective."""
        return self._progress.objective

    @property
    def trials(self) -> int:
        """The number of trials so far."""
        return self._progress.trials

    @property
    def failed(self) -> int:
        """The number of trials that failed so far."""
        return self._progress.failures.total()

    @property
    def best(self) -> Trial | None:
        """The best trial by the leading objective; None before the first one is measured."""
        return self._progress.best

    @property
    def best_value(self) -> float | None:
        """The best value of the leading objective; None before the first trial is measured."""
        return self._progress.best_value

    def stop(self, reason: str = "a callback stopped it") -> None:
        """End the search; the best candidates are compared with the baseline as at any end.

        Args:
            reason: becomes a note of the result.
        """
        check_type("reason", reason, str, "a text")
        self._progress.stop_reason = self._progress.stop_reason or reason


TrialCallback = Callable[[ActiveRun, Trial], object]
"""Callback of `tune`: a function, or a `Callback`."""


class Callback:
    """Base class of callbacks that observe the begin and the end of a run, too."""

    def begin(self, run: ActiveRun) -> None:
        """Observe that a run begins, or is resumed."""

    def __call__(self, run: ActiveRun, trial: Trial) -> None:
        """Observe a trial."""

    def end(self, run: ActiveRun, result: Result | None) -> None:
        """Observe the end of a run; its result is None where an exception ended it."""


def checked_callbacks(callbacks: Iterable[TrialCallback]) -> Sequence[TrialCallback]:
    """Check the callbacks; return them as a list.

    Raises:
        ArgumentError: one is a class, or cannot be called.
    """
    hint = "Write callbacks=[...]." if callable(callbacks) else ""
    check_type("callbacks", callbacks, Iterable, "a list of functions", hint)
    found = [*callbacks]
    for each in found:
        if isinstance(each, type):
            raise wrong_argument("callbacks", each, "instances", f"Write {each.__name__}(...).")
        if not callable(each):
            raise wrong_argument("callbacks", each, "functions of (run, trial)")
    return found


class CallbackListener:
    """Listener that passes a run's progress to another one, and to callbacks.

    Args:
        listener: the other one.
        callbacks: from `checked_callbacks`.

    Attributes:
        result: of the run, once it is known; `Callback.end` is called with it.
    """

    def __init__(self, listener: Listener, callbacks: Sequence[TrialCallback]) -> None:
        self._listener, self._callbacks = listener, callbacks
        self._run: ActiveRun | None = None
        self.result: Result | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._run is not None:
            for each in self._callbacks:
                if isinstance(each, Callback):
                    each.end(self._run, self.result)

    def started(self, progress: Progress) -> None:
        """Observe that a run begins, or is resumed."""
        self._listener.started(progress)
        self._end()  # of a run whose baseline was wrong, and which begins anew with another
        self._run = ActiveRun(progress)
        for each in self._callbacks:
            if isinstance(each, Callback):
                each.begin(self._run)

    def trial(self, trial: Trial, progress: Progress) -> None:
        """Observe a trial."""
        self._listener.trial(trial, progress)
        assert self._run is not None
        for each in self._callbacks:
            each(self._run, trial)

    def ending(self, progress: Progress, what: str) -> None:
        """Observe what follows the search."""
        self._listener.ending(progress, what)


class EarlyStopping(Callback):
    """End a search that improves no more.

    Args:
        patience: trials without an improvement after which the search ends.
        min_improvement: what counts as an improvement of the leading objective, as a share of the best value
            so far: 0.01 for 1 %.

    Raises:
        ArgumentError: an argument has a wrong type or value.

    Examples:
        >>> import planish
        >>> from planish.callbacks import EarlyStopping
        >>> result = planish.tune(
        ...     "C[m] += A[m,k]", size={"m": 8, "k": 8}, trials=500, searcher="random", store="planish.db",
        ...     callbacks=[EarlyStopping(patience=3, min_improvement=0.5)],
        ... )
        >>> result.run.trials < 500
        True
    """

    def __init__(self, patience: int, min_improvement: float = 0.0) -> None:
        check_whole_number("patience", patience, 1)
        check_number("min_improvement", min_improvement)
        if not 0 <= min_improvement < 1:
            raise wrong_argument("min_improvement", min_improvement, "a share from 0 to 1")
        self.patience, self.min_improvement = patience, min_improvement
        self._best: float | None = None
        self._since = 0

    def begin(self, run: ActiveRun) -> None:
        """Forget what an earlier run did."""
        del run
        self._best, self._since = None, 0

    def __call__(self, run: ActiveRun, trial: Trial) -> None:
        """End the search where the last `patience` trials improved nothing."""
        cost = trial.cost(run.objective)
        if cost is not None and (self._best is None or self._improves(cost, self._best)):
            self._best, self._since = cost, 0
            return
        self._since += self._best is not None
        if self._since >= self.patience:
            share = f" by {100 * self.min_improvement:g} %" if self.min_improvement else ""
            run.stop(f"{self.patience} trials in a row did not improve {run.objective.name}{share}")

    def _improves(self, cost: float, best: float) -> bool:
        return best - cost > self.min_improvement * abs(best)


def _require(module: str, package: str) -> Any:
    """Import a logger's package."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        hint = f"Install it: {install_command('loggers')}, or {package} alone."
        raise TargetError(f"this callback needs {package}, which is not installed", hint) from error


def _parameters(run: ActiveRun) -> Mapping[str, str | int]:
    """Return the settings of a run, for a logger."""
    return {
        "run_id": run.id,
        "level": run.level,
        "program": run.program.partition("\n")[0],
        "searcher": run.searcher,
        "seed": run.seed,
        "objectives": ",".join(objective.name for objective in run.objectives),
    }


def _metrics(run: ActiveRun, trial: Trial) -> Mapping[str, float]:
    """Return the values of a trial, the best one so far, and the number of failures."""
    values = dict(trial.outcome.values) if isinstance(trial.outcome, Measured) else {}
    best = {} if run.best_value is None else {f"best_{run.objective.name}": run.best_value}
    return {**values, **best, "failed_trials": run.failed}


def _conclusion(result: Result) -> Mapping[str, float]:
    """Return the result of the comparison with the baseline; empty where there was none."""
    if result.finalist is None or result.baseline is None:
        return {}
    lead = result.finalist.lead
    return {
        f"final_{lead.objective.name}": lead.median,
        f"baseline_{lead.objective.name}": result.baseline.lead.median,
        "gain": lead.gain.value,
        "gain_low": lead.gain.low,
        "gain_high": lead.gain.high,
    }


class MLflowLogger(Callback):
    """Log runs to MLflow: the parameters, the values of each trial, and the comparison at the end.

    Each run of planish is a run of MLflow, which is neither the active one nor changes it.

    Args:
        experiment: the name of the experiment; it is made where it is missing.
        tracking_uri: of the server, or `sqlite:///mlflow.db`; None for MLflow's own setting.
        run_name: the name of the run; None for the id of planish's run.

    Raises:
        TargetError: MLflow is not installed.
    """

    def __init__(
        self, experiment: str = "planish", tracking_uri: str | None = None, run_name: str | None = None
    ) -> None:
        self._client: Any = _require("mlflow", "mlflow-skinny").MlflowClient(tracking_uri)
        self._experiment, self._run_name = experiment, run_name
        self._id = ""

    def begin(self, run: ActiveRun) -> None:
        """Begin a run of MLflow, with its parameters."""
        found = self._client.get_experiment_by_name(self._experiment)
        experiment = found.experiment_id if found else self._client.create_experiment(self._experiment)
        self._id = self._client.create_run(experiment, run_name=self._run_name or run.id).info.run_id
        for name, value in _parameters(run).items():
            self._client.log_param(self._id, name, value)

    def __call__(self, run: ActiveRun, trial: Trial) -> None:
        """Log the values of a trial."""
        for name, value in _metrics(run, trial).items():
            self._client.log_metric(self._id, name, value, step=run.trials)

    def end(self, run: ActiveRun, result: Result | None) -> None:
        """Log the comparison, and end the run of MLflow."""
        if result is not None:
            for name, value in _conclusion(result).items():
                self._client.log_metric(self._id, name, value, step=run.trials)
            self._client.set_tag(self._id, "verdict", str(result).splitlines()[-1])
        self._client.set_terminated(self._id, "FAILED" if result is None else "FINISHED")


class WandbLogger(Callback):
    """Log runs to Weights & Biases: the parameters, the values of each trial, and the comparison at the end.

    Each run of planish is a run of its own there. `WANDB_MODE=offline` keeps it on this machine.

    Args:
        project: the name of the project.
        options: further arguments of `wandb.init`.

    Raises:
        TargetError: wandb is not installed.
    """

    def __init__(self, project: str = "planish", **options: Any) -> None:
        self._wandb = _require("wandb", "wandb")
        self._options = {"project": project, **options}
        self._run: Any = None

    def begin(self, run: ActiveRun) -> None:
        """Begin a run, with its parameters."""
        settings = {"name": run.id, "reinit": "create_new", **self._options}
        self._run = self._wandb.init(config=dict(_parameters(run)), **settings)

    def __call__(self, run: ActiveRun, trial: Trial) -> None:
        """Log the values of a trial."""
        self._run.log(dict(_metrics(run, trial)), step=run.trials)

    def end(self, run: ActiveRun, result: Result | None) -> None:
        """Log the comparison, and end the run."""
        del run
        if result is not None:
            self._run.summary.update({**_conclusion(result), "verdict": str(result).splitlines()[-1]})
        self._run.finish(exit_code=int(result is None))
