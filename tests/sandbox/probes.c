/* Each probe tries one thing, and prints "done" or the name of the error. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int said(long result) { puts(result < 0 ? strerrorname_np(errno) : "done"); return 0; }

static int mapped(const char *gibibytes, int kind) {
  size_t size = atoi(gibibytes) ? (size_t)atoi(gibibytes) << 30 : 1 << 20;
  return said(mmap(0, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 0);
}

static int in_child(long (*work)(void)) {
  int child = fork(), state;
  if (!child) exit(work() < 0 ? errno : 0);
  waitpid(child, &state, 0);
  errno = WEXITSTATUS(state);
  return said(errno ? -1 : 0);
}

static long session(void) { return setsid(); }
static long traced(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0); }

/* Opens what /proc has of a process, and its pipes to be written; tells how much of it was possible. */
static int reached(const char *process, int writes) {
  static const char *const parts[] = {"mem", "environ", "maps", "auxv", "cwd/.", "root/."};
  char path[300];
  int count = 0, end;
  for (int part = 0; part < 6; ++part) {
    snprintf(path, sizeof path, "/proc/%s/%s", process, parts[part]);
    if ((end = open(path, O_RDONLY)) >= 0) ++count, close(end);
  }
  for (int number = 0; number < 64; ++number) {
    snprintf(path, sizeof path, "/proc/%s/fd/%d", process, number);
    if (readlink(path, (char[9]){0}, 9) > 0) ++count;
    if ((end = open(path, O_WRONLY | O_NONBLOCK)) < 0) continue;
    if (!writes || write(end, "caught", 6) == 6) ++count;
    close(end);
  }
  snprintf(path, sizeof path, "/proc/%s/task", process);
  DIR *threads = opendir(path);
  for (struct dirent *each; threads && (each = readdir(threads));) {
    if (each->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/%s/task/%s/mem", process, each->d_name);
    if ((end = open(path, O_RDWR)) >= 0) ++count, close(end);
  }
  printf("%d\n", count);
  return 0;
}

int main(int count, char **words) {
  const char *what = words[1], *on = count > 2 ? words[2] : "";
  const struct timespec times[2] = {{1, 0}, {1, 0}};
  struct timex clock = {.modes = ADJ_TICK, .tick = 10000};
  setvbuf(stdout, NULL, _IOLBF, 0);
#define PROBE(name) if (!strcmp(what, name)) return
  PROBE("write") said(open(on, O_WRONLY | O_CREAT, 0600));
  PROBE("truncate") said(truncate(on, 0));
  PROBE("remove") said(unlink(on));
  PROBE("read") said(open(on, O_RDONLY));
  PROBE("unix") said(socket(AF_UNIX, SOCK_STREAM, 0));
  if (!strcmp(what, "connect")) {
    struct sockaddr_in to = {AF_INET, htons(atoi(on)), {htonl(INADDR_LOOPBACK)}};
    int end = socket(AF_INET, SOCK_STREAM, 0);
    return said(end < 0 ? end : connect(end, (struct sockaddr *)&to, sizeof to));
  }
  PROBE("kill") said(kill(atoi(on), SIGTERM));
  PROBE("limit") said(prlimit(atoi(on), RLIMIT_CORE, &(struct rlimit){0, 0}, NULL));
  PROBE("renice") said(setpriority(PRIO_PROCESS, atoi(on), 0));
  PROBE("signalled") said(fcntl(open("/dev/null", O_RDONLY), F_SETOWN, atoi(on)));
  PROBE("raise") said(setrlimit(RLIMIT_DATA, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}));
  PROBE("core") said(setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}));
  PROBE("flock") said(flock(open(on, O_RDONLY), LOCK_SH | LOCK_NB));
  PROBE("tgkill") said(syscall(SYS_tgkill, atoi(on), atoi(on), SIGTERM));
  PROBE("reach") reached(on, 1);
  PROBE("look") reached(on, 0);
  PROBE("setsid") in_child(session);
  PROBE("ptrace") in_child(traced);
  PROBE("attach") said(ptrace(PTRACE_ATTACH, atoi(on), 0, 0));
  PROBE("unshare") said(unshare(CLONE_NEWUSER));
  PROBE("mount") said(mount("none", on, "tmpfs", 0, ""));
  PROBE("io_uring") said(syscall(SYS_io_uring_setup, 1, NULL));
  PROBE("bpf") said(syscall(SYS_bpf, 0, NULL, 0));
  PROBE("key") said(syscall(SYS_keyctl, 0, -3, 1));
  PROBE("chmod") said(chmod(on, 0640));
  PROBE("chown") said(chown(on, getuid(), getgid()));
  PROBE("utime") said(utimensat(AT_FDCWD, on, times, 0));
  PROBE("xattr") said(setxattr(on, "user.a", "b", 1, 0));
  PROBE("attributes") said(syscall(SYS_ioctl, open(on, O_RDONLY), 0x40086602, &(int){0x80}));
  PROBE("mkfifo") said(mkfifo(on, 0600));
  PROBE("mknod") said(mknod(on, S_IFCHR | 0600, 0x103));
  PROBE("shmget") said(shmget(IPC_PRIVATE, 4096, 0600));
  PROBE("shmctl") said(shmctl(0, IPC_INFO, (struct shmid_ds *)&(struct shminfo){0}));
  PROBE("semctl") said(semctl(0, 0, IPC_INFO, &(struct seminfo){0}));
  PROBE("msgctl") said(msgctl(0, IPC_INFO, (struct msqid_ds *)&(struct msginfo){0}));
  PROBE("semget") said(semget(IPC_PRIVATE, 1, 0600));
  PROBE("msgget") said(msgget(IPC_PRIVATE, 0600));
  PROBE("clock") said(clock_settime(CLOCK_REALTIME, times));
  PROBE("adjust") said(adjtimex(&clock));
  PROBE("hostname") said(sethostname("probed", 6));
  PROBE("private") mapped(on, MAP_PRIVATE);
  PROBE("shared") mapped(on, MAP_SHARED);
  PROBE("memfd") said(syscall(SYS_memfd_create, "x", 0));
  if (!strcmp(what, "grow")) {
    signal(SIGXFSZ, SIG_IGN);
    return said(ftruncate(open(on, O_RDWR | O_CREAT, 0600), (3LL << 30) + 1));
  }
  if (!strcmp(what, "files")) {
    for (int files = 0; files < 1200; ++files)
      if (open("/dev/null", O_RDONLY) < 0) return said(-1);
    return said(0);
  }
  PROBE("environment") !puts(getenv(on) ? getenv(on) : "not there");
  if (!strcmp(what, "linger")) {
    if (fork()) return 0;
    if (fork()) return 0;
    printf("%d\n", getpid());
    fflush(stdout);
    close(1);
    sleep(60);
  }
  if (!strcmp(what, "fork")) {
    for (int children = 0;; ++children) {
      int child = children < 500 ? fork() : 1;
      if (children == 500) return said(0);
      if (child < 0) return said(-1);
      if (!child) { close(1); sleep(60); exit(0); }
    }
  }
  return 1;
}
