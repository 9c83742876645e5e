/* matrix SITUATION FUNCTION: calls one function where callers come from; 0 where it did its work.
   matrix situations, matrix functions: what there is, a line each. Built with -fno-builtin -rdynamic. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void *__memcpy_chk (void *, const void *, size_t, size_t);
void *__memmove_chk (void *, const void *, size_t, size_t);
void *__mempcpy_chk (void *, const void *, size_t, size_t);
void *__memset_chk (void *, int, size_t, size_t);
void __explicit_bzero_chk (void *, size_t, size_t);

/* C23's, which not every C library has. */
void *memset_explicit (void *, int, size_t) __attribute__ ((weak));
void *__memset_explicit_chk (void *, int, size_t, size_t) __attribute__ ((weak));

/* Two buffers a thread, apart from every stack and every allocator. */
enum { MOST = 40000 };
static __thread unsigned char a[MOST + 64], b[MOST + 64];
static const size_t LENGTHS[] = { 0, 1, 3, 8, 15, 16, 33, 64, 65, 127, 256, 257, 1000, 4096, MOST };

static unsigned char
pattern (size_t at)
{
  return (unsigned char) (at * 7 + (at >> 8) + 1);
}

static void
prepare (void)
{
  for (size_t at = 0; at < sizeof a; at++)
    a[at] = pattern (at), b[at] = 0xEE;
}

static int
holds (const unsigned char *at, size_t n, size_t from)
{
  for (size_t i = 0; i < n; i++)
    if (at[i] != pattern (from + i))
      return 0;
  return at[n] == 0xEE;
}

static int
is (const unsigned char *at, size_t n, unsigned char byte)
{
  for (size_t i = 0; i < n; i++)
    if (at[i] != byte)
      return 0;
  return 1;
}

#define EACH_LENGTH(...)                                                                              \
  for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++)                                       \
    {                                                                                                 \
      size_t n = LENGTHS[i];                                                                          \
      prepare ();                                                                                     \
      if (!(__VA_ARGS__))                                                                             \
        return 1;                                                                                     \
    }                                                                                                 \
  return 0

#define CHECK(name, ...) static int check_##name (void) { EACH_LENGTH (__VA_ARGS__); }
CHECK (memcpy, memcpy (b + 1, a, n) == b + 1 && holds (b + 1, n, 0))
CHECK (memmove, memmove (b + 1, a + 3, n) == b + 1 && holds (b + 1, n, 3)
                && memmove (a + 5, a, n) == a + 5 && (n == 0 || a[5] == pattern (0)))
CHECK (mempcpy, mempcpy (b + 1, a, n) == b + 1 + n && holds (b + 1, n, 0))
CHECK (memset, memset (b, 0x55, n) == b && is (b, n, 0x55) && b[n] == 0xEE)
CHECK (memcmp, memcmp (a, a, n) == 0 && (n == 0 || memcmp (a, b, n) < 0) && (n == 0 || memcmp (b, a, n) > 0))
CHECK (bcmp, bcmp (a, a, n) == 0 && (n == 0 || bcmp (a, b, n) != 0))
CHECK (bzero, (bzero (b, n), is (b, n, 0)) && b[n] == 0xEE)
CHECK (explicit_bzero, (explicit_bzero (b, n), is (b, n, 0)) && b[n] == 0xEE)
CHECK (memset_explicit, memset_explicit == NULL
                        || (memset_explicit (b, 0x55, n) == b && is (b, n, 0x55) && b[n] == 0xEE))
CHECK (__memset_explicit_chk, __memset_explicit_chk == NULL
                              || (__memset_explicit_chk (b, 0x55, n, n) == b && is (b, n, 0x55) && b[n] == 0xEE))
CHECK (__memcpy_chk, __memcpy_chk (b + 1, a, n, n) == b + 1 && holds (b + 1, n, 0))
CHECK (__memmove_chk, __memmove_chk (b + 1, a + 3, n, n) == b + 1 && holds (b + 1, n, 3))
CHECK (__mempcpy_chk, __mempcpy_chk (b + 1, a, n, n) == b + 1 + n && holds (b + 1, n, 0))
CHECK (__memset_chk, __memset_chk (b, 0x55, n, n) == b && is (b, n, 0x55) && b[n] == 0xEE)
CHECK (__explicit_bzero_chk, (__explicit_bzero_chk (b, n, n), is (b, n, 0)) && b[n] == 0xEE)

typedef int check_t (void);
#define ROW(name) { #name, check_##name, (void *) name }
static const struct { const char *name; check_t *check; void *address; } FUNCTIONS[] = {
  ROW (memcpy), ROW (memmove), ROW (mempcpy), ROW (memset), ROW (memcmp), ROW (bcmp), ROW (bzero),
  ROW (explicit_bzero), ROW (memset_explicit), ROW (__memset_explicit_chk), ROW (__memcpy_chk), ROW (__memmove_chk), ROW (__mempcpy_chk),
  ROW (__memset_chk), ROW (__explicit_bzero_chk),
};

static check_t *check;
static const char *checked_name;
static void *checked_address;
static volatile int wrong;

/* Called by the constructor of constructor.c too. */
void
matrix_check (void)
{
  wrong |= check ();
}

static int
ended (pid_t child)
{
  int status;
  return child < 0 || waitpid (child, &status, 0) != child || status != 0;
}

static int
main_thread (void)
{
  return check ();
}

static int
fork_handler (void)
{
  pthread_atfork (matrix_check, matrix_check, matrix_check);
  pid_t child = fork ();
  if (child == 0)
    _exit (check () | wrong);
  return ended (child) | wrong | check ();
}

static int
constructor_in_dlopen (void)
{
  return dlopen (getenv ("MATRIX_CONSTRUCTOR"), RTLD_NOW) == NULL || wrong;
}

/* A library that is loaded later finds by name what the program itself calls. */
static int
dlsym_in_dlopen (void)
{
  void *library = dlopen (getenv ("MATRIX_CONSTRUCTOR"), RTLD_NOW);
  void *(*find) (const char *);
  if (library == NULL || (*(void **) &find = dlsym (library, "constructor_finds")) == NULL)
    return 1;
  void *found = find (checked_name);
  /* glibc has names for programs that were linked long ago, which nobody finds. */
  if (found == NULL ? dlsym (RTLD_DEFAULT, checked_name) != NULL : found != checked_address)
    return 1;
  return check ();
}

enum { THREADS = 8 };
static pthread_barrier_t barrier;

static void *
thread (void *together)
{
  if (together != NULL)
    pthread_barrier_wait (&barrier);
  return (void *) (intptr_t) check ();
}

static int
first_call_from_threads (void)
{
  pthread_t threads[THREADS];
  void *bad;
  int any = 0;
  pthread_barrier_init (&barrier, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create (&threads[i], NULL, thread, &barrier) != 0)
      return 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join (threads[i], &bad), any |= bad != NULL;
  return any;
}

static void
handler (int signal)
{
  (void) signal;
  matrix_check ();
}

static int
signal_handler (void)
{
  static char stack[65536];
  stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
  struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
  if (sigaltstack (&other, NULL) != 0 || sigaction (SIGUSR1, &action, NULL) != 0)
    return 1;
  raise (SIGUSR1);
  return wrong;
}

static int
vfork_child (void)
{
  pid_t child = vfork ();
  if (child == 0)
    _exit (check ());
  return ended (child) | check ();
}

static int
no_file_descriptor (void)
{
  int next = dup (0);
  struct rlimit none = { next, next };
  close (next);
  return setrlimit (RLIMIT_NOFILE, &none) != 0 || dup (0) >= 0 || check ();
}

static int
pid_namespace (void)
{
  if (unshare (CLONE_NEWPID) != 0)
    return perror ("unshare"), 1;
  pid_t child = fork ();
  if (child == 0)
    _exit (getpid () != 1 || check ());
  return ended (child);
}

static int
strict_seccomp (void)
{
  /* Its first call: what is set up once is set up before. */
  if (check () != 0 || prctl (PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
    return 1;
  int result = check ();
  syscall (SYS_exit, result);
  return 1;
}

static int
small_stack (void)
{
  pthread_attr_t attributes;
  pthread_t small;
  void *bad = NULL;
  pthread_attr_init (&attributes);
  if (pthread_attr_setstacksize (&attributes, PTHREAD_STACK_MIN + 2 * sizeof a) != 0
      || pthread_create (&small, &attributes, thread, NULL) != 0)
    return 1;
  pthread_join (small, &bad);
  return bad != NULL;
}

static const struct { const char *name; check_t *run; } SITUATIONS[] = {
  { "main-thread", main_thread },
  { "fork-handler", fork_handler },
  { "constructor-in-dlopen", constructor_in_dlopen },
  { "dlsym-in-dlopen", dlsym_in_dlopen },
  { "first-call-from-threads", first_call_from_threads },
  { "signal-handler", signal_handler },
  { "vfork-child", vfork_child },
  { "no-file-descriptor", no_file_descriptor },
  { "pid-namespace", pid_namespace },
  { "strict-seccomp", strict_seccomp },
  { "small-stack", small_stack },
};

#define COUNT(table) (sizeof table / sizeof *table)

int
main (int argc, char **argv)
{
  if (argc == 2 && strcmp (argv[1], "functions") == 0)
    for (size_t i = 0; i < COUNT (FUNCTIONS); i++)
      puts (FUNCTIONS[i].name);
  if (argc == 2 && strcmp (argv[1], "situations") == 0)
    for (size_t i = 0; i < COUNT (SITUATIONS); i++)
      puts (SITUATIONS[i].name);
  if (argc != 3)
    return argc != 2;
  for (size_t i = 0; i < COUNT (FUNCTIONS); i++)
    if (strcmp (argv[2], FUNCTIONS[i].name) == 0)
      {
        check = FUNCTIONS[i].check;
        checked_name = FUNCTIONS[i].name;
        checked_address = FUNCTIONS[i].address;
      }
  for (size_t i = 0; i < COUNT (SITUATIONS); i++)
    if (check != NULL && strcmp (argv[1], SITUATIONS[i].name) == 0)
      return SITUATIONS[i].run ();
  return 2;
}
