"""Data sets of labelled images: IDX, CIFAR-10, images in folders and tars, npz files, and stand-ins."""

from planish.hlo.workload.data.data_files import digest_of, open_data
from planish.hlo.workload.data.examples import Examples, Group
from planish.hlo.workload.data.stand_ins import digits, made

__all__ = ["Examples", "Group", "digest_of", "digits", "made", "open_data"]
