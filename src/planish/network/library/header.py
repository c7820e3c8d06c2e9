"""C interface of a library: its header, and what its functions return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any


class ReturnCode(IntEnum):
    """Return codes of a library's functions."""

    OK = 0
    NO_INSTRUCTIONS = 1
    NO_MEMORY = 2
    MISALIGNED = 3
    NO_VARIANT = 4
    WRONG_BUFFER = 5


_MEANINGS: Mapping[int, str] = {
    ReturnCode.NO_INSTRUCTIONS: "the processor lacks instructions that the library was compiled for",
    ReturnCode.NO_MEMORY: "the call lacks memory",
    ReturnCode.MISALIGNED: "the workspace does not begin at a multiple of 64 bytes",
    ReturnCode.NO_VARIANT: "there is no such variant",
}


def describe_code(code: int) -> str:
    """Describe what a function of a library returns."""
    return _MEANINGS.get(code, f"it returns {code}")


_C_TYPES = {"float32": "float", "float64": "double", "bool": "bool", "float16": "uint16_t"} | {
    f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_ONE = """extern const struct model_tensor model_inputs[], model_outputs[];

/* Computes the outputs. Several threads may call it at once, each with outputs and a workspace of its own. */
int model_run(const void *const *inputs, void *const *outputs, void *workspace);

/* Computes some layers, from first to before after, to time them, each once and in their order: a layer may
   overwrite what it has read. */
int model_run_layers(
    const void *const *inputs, void *const *outputs, void *workspace, int first, int after);
"""
_SEVERAL = """/* The network for some shapes of its inputs. */
#define MODEL_VARIANTS @COUNT@
struct model_variant {
    const struct model_tensor *inputs, *outputs;
};
extern const struct model_variant model_variants[MODEL_VARIANTS];

/* Returns the number of the variant whose inputs have these shapes, or -1. */
int model_find(const int64_t *const *shapes);

/* Computes the outputs by a variant. Several threads may call it at once, each with outputs and a workspace
   of its own. */
int model_run(int variant, const void *const *inputs, void *const *outputs, void *workspace);
"""


_CHECKED = """
/* In debug builds, model_run returns MODEL_WRONG_BUFFER where a buffer is missing, does not begin at a
   multiple of the size of its elements, or shares memory with another that is written. */
#ifndef NDEBUG
static inline int64_t model_size(const struct model_tensor *tensor)
{
    int64_t size = tensor->bytes;
    for (int i = 0; i < tensor->rank; i++)
        size *= tensor->shape[i];
    return size;
}

static inline int model_apart(const void *a, int64_t a_size, const void *b, int64_t b_size)
{
    const uintptr_t one = (uintptr_t)a, other = (uintptr_t)b;
    return one + (uintptr_t)a_size <= other || other + (uintptr_t)b_size <= one;
}

static inline int model_check_buffers(
    const struct model_tensor *ins, const struct model_tensor *outs, const void *const *inputs,
    void *const *outputs, const void *workspace)
{
    for (int i = 0; i < MODEL_INPUTS; i++)
        if (!inputs[i] || (uintptr_t)inputs[i] % (uintptr_t)ins[i].bytes
            || !model_apart(inputs[i], model_size(&ins[i]), workspace, MODEL_WORKSPACE_BYTES))
            return MODEL_WRONG_BUFFER;
    for (int i = 0; i < MODEL_OUTPUTS; i++) {
        int64_t size = model_size(&outs[i]);
        if (!outputs[i] || (uintptr_t)outputs[i] % (uintptr_t)outs[i].bytes
            || !model_apart(outputs[i], size, workspace, MODEL_WORKSPACE_BYTES))
            return MODEL_WRONG_BUFFER;
        for (int j = 0; j < MODEL_INPUTS; j++)
            if (!model_apart(outputs[i], size, inputs[j], model_size(&ins[j])))
                return MODEL_WRONG_BUFFER;
        for (int j = 0; j < i; j++)
            if (!model_apart(outputs[i], size, outputs[j], model_size(&outs[j])))
                return MODEL_WRONG_BUFFER;
    }
    return MODEL_OK;
}
@WRAPPER@
#endif
"""
_CHECKED_ONE = """
static inline int model_run_checked(const void *const *inputs, void *const *outputs, void *workspace)
{
    int code = MODEL_OK;
    if (inputs && outputs)
        code = model_check_buffers(model_inputs, model_outputs, inputs, outputs, workspace);
    return code ? code : model_run(inputs, outputs, workspace);
}
#define model_run model_run_checked"""
_CHECKED_SEVERAL = """
static inline int model_run_checked(
    int variant, const void *const *inputs, void *const *outputs, void *workspace)
{
    int code = MODEL_OK;
    if (inputs && outputs && variant >= 0 && variant < MODEL_VARIANTS) {
        const struct model_variant *chosen = &model_variants[variant];
        code = model_check_buffers(chosen->inputs, chosen->outputs, inputs, outputs, workspace);
    }
    return code ? code : model_run(variant, inputs, outputs, workspace);
}
#define model_run model_run_checked"""


def _shape_note(port: Mapping[str, Any]) -> str:
    return f" at most; output {port['shape_output']} is its shape" if "shape_output" in port else ""


def header(variants: Sequence[Sequence[Sequence[Mapping[str, Any]]]], workspace: int) -> str:
    """Write the header of a library.

    Args:
        variants: the inputs and the outputs of each set of shapes, as manifests have them.
        workspace: bytes that any of them needs.
    """
    rank = max([len(port["shape"]) for ports in variants for kind in ports for port in kind] + [1])
    about = "".join(
        f" * {f'variant {number}, ' if len(variants) > 1 else ''}{kind} {index}: "
        f"{_C_TYPES[port['dtype']]} {port['shape']}{_shape_note(port)}\n"
        for number, ports in enumerate(variants)
        for kind, listed in zip(("inputs", "outputs"), ports, strict=True)
        for index, port in enumerate(listed)
    )
    inputs, outputs = variants[0]
    functions = _SEVERAL.replace("@COUNT@", str(len(variants))) if len(variants) > 1 else _ONE
    checks = _CHECKED.replace("@WRAPPER@", _CHECKED_SEVERAL if len(variants) > 1 else _CHECKED_ONE)
    return f"""/*
 * A network, compiled by planish. Tensors are row-major:
{about} */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Bytes of scratch memory for each call that runs at the same time, at a multiple of MODEL_ALIGNMENT. */
#define MODEL_WORKSPACE_BYTES {workspace}
#define MODEL_ALIGNMENT 64
#define MODEL_INPUTS {len(inputs)}
#define MODEL_OUTPUTS {len(outputs)}

/* What the functions return. */
enum {{
    {", ".join(f"MODEL_{code.name} = {code.value}" for code in ReturnCode)}
}};

/* Bytes of an element are those of the type. Of an output whose shape depends on data, the shape is the
   largest; the output whose index is `shape_output` receives the shape of a call, and is -1 for others. */
struct model_tensor {{
    const char *name, *type;
    int rank, bytes, shape_output;
    int64_t shape[{rank}];
}};
{functions}{checks}
#ifdef __cplusplus
}}
#endif

#endif /* MODEL_H */
"""
