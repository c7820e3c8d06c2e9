#include "samples.h"

#include <string.h>

struct program {
    const char *name;
    void (*run)(void);
};

static const struct program programs[] = {
    {"aliases", aliases}, {"bits", bits}, {"calls", calls}, {"floats", floats}, {"jumps", jumps},
    {"lists", lists}, {"loops", loops}, {"patterns", patterns}, {"records", records},
    {"strings", strings}, {"switches", switches}, {"volatiles", volatiles},
};

/* Runs the programs whose names are given; all of them where none is. */
int main(int argc, char **argv) {
    int ran = 0;
    for (unsigned p = 0; p < sizeof programs / sizeof *programs; p++) {
        int wanted = argc == 1;
        for (int a = 1; a < argc; a++)
            wanted |= !strcmp(argv[a], programs[p].name);
        if (!wanted)
            continue;
        printf("== %s\n", programs[p].name);
        programs[p].run();
        ran++;
    }
    return ran ? 0 : 2;
}
