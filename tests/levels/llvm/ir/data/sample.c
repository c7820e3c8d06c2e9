#include <setjmp.h>
#include <stdio.h>
#include <string.h>
struct node { struct node *next; int value; char name[16]; };
typedef struct { struct node node; double weight; } outer;
static int counter;
extern int shared;
static const int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
__thread int tls;
static int helper(struct node *n, int k) { counter += k; return n->value + table[k & 7]; }
int sum(struct node *n) {
  int s = 0;
  while (n) { s += helper(n, 1); n = n->next; }
  printf("sum %d; @sum { %%x }\n", s);
  return s;
}
outer twice(outer *o) { outer r = *o; r.weight *= 2; tls++; return r; }
jmp_buf buffer;
int saved(void) { if (setjmp(buffer)) return 1; shared++; return 0; }
int jumps(int x) { static void *to[] = {&&a, &&c}; goto *to[x & 1]; a: return 1; c: return 2; }
int choose(int x) { switch (x) { case 1: return 3; case 5: return 9; case 7: return x * 2; default: return 0; } }
void bare(void) { __asm__ volatile("nop ; #1 @x %%eax" ::: "memory"); }
int (*pointer)(struct node *, int) = helper;
unsigned long mixed(float f, unsigned char c, const char *s) {
  unsigned long h = 5381;
  for (; *s; s++) h = h * 33 ^ (unsigned char)*s;
  return h + (unsigned long)(f * c) + strlen("known");
}
