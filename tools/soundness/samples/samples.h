/* Each file is one program: a function that prints what it computes, without any undefined behaviour. */
#include <stdio.h>

void aliases(void);
void bits(void);
void calls(void);
void floats(void);
void jumps(void);
void lists(void);
void loops(void);
void patterns(void);
void records(void);
void strings(void);
void switches(void);
void volatiles(void);
