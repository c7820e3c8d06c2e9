"""Workloads: with which data a module is run, and how its answers are scored."""

from planish.levels.hlo.workload.arguments import Fitted, RoleCall, first_parameters, fit, labels_as
from planish.levels.hlo.workload.examples import Labelled, Part, Parts, WorkloadCalls, first_call
from planish.levels.hlo.workload.files import beside, own_outputs, read_workload, with_metric, with_own_files
from planish.levels.hlo.workload.spec import (
    Data,
    File,
    Images,
    Inputs,
    Split,
    Training,
    Workload,
    workload_from,
)

__all__ = [
    "Data",
    "File",
    "Fitted",
    "Images",
    "Inputs",
    "Labelled",
    "Part",
    "Parts",
    "RoleCall",
    "Split",
    "Training",
    "Workload",
    "WorkloadCalls",
    "beside",
    "first_call",
    "first_parameters",
    "fit",
    "labels_as",
    "own_outputs",
    "read_workload",
    "with_metric",
    "with_own_files",
    "workload_from",
]
