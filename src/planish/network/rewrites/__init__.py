"""Rewriting of networks before their kernels are formed."""
