"""Workloads: with which data a module is run, and how its answers are scored."""

from planish.hlo.workload.argument_roles import Fitted, RoleCall, fit
from planish.hlo.workload.module_calls import WorkloadCalls
from planish.hlo.workload.shaping import first_parameters, labels_as
from planish.hlo.workload.spec import Data, File, Images, Inputs, Split, Training, Workload
from planish.hlo.workload.split_examples import Labelled, Part, Parts
from planish.hlo.workload.tables import workload_from
from planish.hlo.workload.workload_files import (
    beside,
    own_outputs,
    read_workload,
    with_metric,
    with_own_files,
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
    "first_parameters",
    "fit",
    "labels_as",
    "own_outputs",
    "read_workload",
    "with_metric",
    "with_own_files",
    "workload_from",
]
