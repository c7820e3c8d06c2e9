"""StableHLO modules by the bindings of jaxlib: reading, ids, normal form, hashing and printing."""

from importlib import import_module

from planish.core import TargetError
from planish.core.installation import install_command

try:
    import_module("jaxlib.mlir.ir")
except ImportError as error:
    what = "the level 'hlo' needs jaxlib"
    raise TargetError(what, f"Install it with: {install_command('hlo')}") from error
