/* Runs a compiled network once, on inputs of ones, and prints the first elements of each output. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t elements(const struct model_tensor *tensor)
{
    size_t size = 1;
    for (int i = 0; i < tensor->rank; i++)
        size *= (size_t)tensor->shape[i];
    return size;
}

static void *allocate(const struct model_tensor *tensor)
{
    size_t width = strcmp(tensor->type, "int64") ? 4 : 8;
    return calloc(elements(tensor) + 1, width);
}

int main(void)
{
    const void *inputs[MODEL_INPUTS + 1];
    void *outputs[MODEL_OUTPUTS];
    void *workspace = aligned_alloc(MODEL_ALIGNMENT, MODEL_WORKSPACE_BYTES + MODEL_ALIGNMENT);
    for (int i = 0; i < MODEL_INPUTS; i++) {
        void *memory = allocate(&model_inputs[i]);
        if (!strcmp(model_inputs[i].type, "float32"))
            for (size_t j = 0; j < elements(&model_inputs[i]); j++)
                ((float *)memory)[j] = 1.0f;
        inputs[i] = memory;
    }
    for (int i = 0; i < MODEL_OUTPUTS; i++)
        outputs[i] = allocate(&model_outputs[i]);
    int code = model_run(inputs, outputs, workspace);
    if (code != MODEL_OK) {
        fprintf(stderr, "model_run returns %d\n", code);
        return code;
    }
    for (int i = 0; i < MODEL_OUTPUTS; i++) {
        printf("%s:", model_outputs[i].name);
        for (size_t j = 0; j < elements(&model_outputs[i]) && j < 4; j++)
            printf(" %.9g", ((const float *)outputs[i])[j]);
        printf("\n");
    }
    return 0;
}
