"""Names of tensors and kernels in C and C++, where keywords, macros and names of <stdint.h> are taken."""

from __future__ import annotations

import re

_WORDS = """
    NULL alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    contract_assert decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto i386 if inline int linux long main mutable namespace new noexcept not not_eq nullptr
    offsetof operator or or_eq pascal private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
    true try typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile
    wchar_t while xor xor_eq max_align_t nullptr_t ptrdiff_t size_t ssize_t errno
"""
_OF_HEADERS = (
    r"u?int(?:_least|_fast)?\d+_t|u?int(?:ptr|max)_t|U?INT(?:_LEAST|_FAST)?\d+_(?:MAX|MIN|WIDTH|C)"
    r"|U?INT(?:PTR|MAX)_(?:MAX|MIN|WIDTH|C)|(?:PTRDIFF|SIG_ATOMIC|SIZE|WCHAR|WINT)_(?:MAX|MIN|WIDTH)"
)
_TAKEN = re.compile(rf"(?:{'|'.join(_WORDS.split())}|{_OF_HEADERS})_*")
# Of these every implementation may have macros.
_OF_IMPLEMENTATION = re.compile(r"t*_[A-Z_]\w*")
_OF_FUNCTION = re.compile(r"(?:args|prepared|workspace)_*")


def can_name_function(name: str) -> bool:
    """Return whether a C and a C++ compiler take a name for a function beside <stdint.h>."""
    letters = name.isascii() and name.isidentifier()
    return letters and not _TAKEN.fullmatch(name) and not _OF_IMPLEMENTATION.fullmatch(name)


def parameter_name(tensor: str, kernel: str) -> str:
    """Return what a tensor is called in the function of a kernel; other tensors have other names.

    Args:
        tensor: its name in the program.
        kernel: the function's name, and the prefix of all other symbols and macros of the header.
    """
    if _OF_IMPLEMENTATION.fullmatch(tensor):
        return f"t{tensor}"
    own = tensor.startswith((f"{kernel}_", f"{kernel.upper()}_"))
    return f"{tensor}_" if own or _TAKEN.fullmatch(tensor) or _OF_FUNCTION.fullmatch(tensor) else tensor
