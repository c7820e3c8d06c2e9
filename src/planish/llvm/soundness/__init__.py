"""Whether passes keep what programs mean: programs are transformed, run, and their answers compared.

Differential testing, as in the study of csmith (Yang et al., PLDI 2011): it finds wrong code, and does not
prove that there is none.
"""
