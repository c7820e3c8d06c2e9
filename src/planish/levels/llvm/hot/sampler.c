/* Notes where the program is, ten thousand times a second, in a file of its folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST = 1 << 16 };
static volatile uint64_t *noted;
static unsigned long count;

void planish_sampler(int number, siginfo_t *about, void *given) {
  const ucontext_t *context = given;
  uint64_t place = 0;
  (void)number, (void)about;
#if defined(__x86_64__)
  place = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  place = (uint64_t)context->uc_mcontext.pc;
#endif
  unsigned long at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  if (at < MOST) noted[at] = place - (uint64_t)(uintptr_t)&planish_sampler;
}

__attribute__((constructor)) static void planish_begin(void) {
  int file = open("planish-samples", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || ftruncate(file, MOST * sizeof *noted)) return;
  noted = mmap(0, MOST * sizeof *noted, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (noted == MAP_FAILED) return;
  struct sigaction action = {.sa_sigaction = planish_sampler, .sa_flags = SA_RESTART | SA_SIGINFO};
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
  struct itimerspec each = {{0, 100000}, {0, 100000}};
  timer_t timer;
  if (sigaction(SIGPROF, &action, 0) || timer_create(CLOCK_MONOTONIC, &event, &timer)) return;
  timer_settime(timer, 0, &each, 0);
}
