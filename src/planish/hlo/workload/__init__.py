"""Workloads: with which data a module is run, and how its answers are scored."""

from planish.hlo.workload.fitting import Call, Fitted, fit
from planish.hlo.workload.shaping import first_parameters, labels_as
from planish.hlo.workload.spec import Data, File, Images, Split, Training, Workload
from planish.hlo.workload.split_examples import Labelled, Part, Parts
from planish.hlo.workload.tables import workload_from
from planish.hlo.workload.workload_files import beside, read_workload, with_own_files

__all__ = [
    "Call",
    "Data",
    "File",
    "Fitted",
    "Images",
    "Labelled",
    "Part",
    "Parts",
    "Split",
    "Training",
    "Workload",
    "beside",
    "first_parameters",
    "fit",
    "labels_as",
    "read_workload",
    "with_own_files",
    "workload_from",
]
