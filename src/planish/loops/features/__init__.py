"""Numbers that describe a candidate, read from its annotated tree: no code is generated for them.

The rows, one for each loop, are AutoTVM's context features Z (section 3.1 and appendix of its paper); theirs
come from a tree whose annotations the template wrote, ours from the decisions that the back end carries out.
"""
