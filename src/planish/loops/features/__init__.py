"""Numbers that describe a candidate; no code is generated for them.

`of_schedules` reads them from schedules alone, many at once: that is what searches use. The longer way, by
`loop_rows` and `fixed_width`, has one row for each loop of the annotated tree: AutoTVM's context features Z
(section 3.1 and appendix of its paper); theirs come from a tree whose annotations the template wrote, ours
from the decisions that the back end carries out.
"""
