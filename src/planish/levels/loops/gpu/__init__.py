"""Tensor programs on GPUs: schedules with blocks and threads, kernels in OpenCL and CUDA."""
