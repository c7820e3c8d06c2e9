"""A drop-in for clang that makes -Oz smaller: `planish cc`, `planish c++`.

A second build must take hardly longer than clang does, and most of its time is the start of this
interpreter and of clang. So what a compilation needs whose answer is known imports nothing but `os`, `sys`,
`time` and each other: no dataclasses (13 ms), `re` (10) or `pathlib` (10); and `signal` (5) while clang is at
work. All else is in `uncached` and loads late.
"""
