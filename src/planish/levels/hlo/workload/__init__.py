"""Workloads: with which data a module is run, and how its answers are scored."""

from planish.levels.hlo.workload.spec import Data, File, Images, Inputs, Split, Training, Workload

__all__ = ["Data", "File", "Images", "Inputs", "Split", "Training", "Workload"]
