"""Running what llvmlite's public interface can express."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import llvmlite.binding as llvm

from planish.llvm.backend.lite.reduced.elements import Element


def run(module: Any, machine: Any, elements: list[Element]) -> None:
    """Transform a module.

    Args:
        module: llvmlite's.
        machine: llvmlite's, of the module's target.
        elements: what to run, in order.
    """
    for is_level, group in groupby(elements, key=lambda element: isinstance(element, int)):
        if is_level:
            for level in group:
                _run_with(module, machine, level, [])
        else:
            _run_with(module, machine, None, list(group))


def _run_with(module: Any, machine: Any, level: Any, names: list[Any]) -> None:
    # A pass builder serves one run: a used one calls back what is gone.
    options = llvm.create_pipeline_tuning_options(speed_level=2 if level is None else level)
    builder = llvm.create_pass_builder(machine, options)
    manager = llvm.create_new_module_pass_manager() if level is None else builder.getModulePassManager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    manager.run(module, builder)
    for made in (manager, builder, options):
        made.close()
