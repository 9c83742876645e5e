/* System calls in the middle of a program: copies, moves, fills, zeros and comparisons of all sizes,
 * in two threads and in a signal handler, while a filter traps every
 * system call but write, exit and a handler's return. Says which calls those were: "middle N: numbers".
 *   middle end    ends by exit, so that destructors run, and their calls are told one by one: "end 1: number"
 *   middle filter says how many a call of the program's own makes: the filter works */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { LARGE = 24 << 20, MOST = 2000 };
static char from[LARGE], to[2][LARGE];
static int trapped[MOST];
static volatile int count, wrong, started, ready, done, ends;

static void say(const char *where, int from_call) {
    char line[10000];
    int length = snprintf(line, sizeof line, "%s %d:", where, count - from_call);
    for (int i = from_call; i < count && i < MOST && length < 9000; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " %d", trapped[i]);
    line[length++] = '\n';
    syscall(SYS_write, 1, line, length);
}

static void trap(int signal, siginfo_t *what, void *context) {
    (void)signal;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -EPERM;
    int at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    if (at < MOST) trapped[at] = what->si_syscall;
    if (ends) say("end", at);
}

#define SITE(name, ...) __attribute__((noinline)) static void name(char *b, size_t n) { __VA_ARGS__; wrong += b[n / 2] == 1; }
SITE(copy_here, memcpy(b, from, n))
SITE(copy_there, memcpy(b, from, n); __asm__ volatile(""))
SITE(move_here, memmove(b, from, n))
SITE(fill_here, memset(b, 0x5A, n))
SITE(zero_here, memset(b, 0, n))

static void all(char *b) {
    for (size_t n = 1; n < LARGE; n = n * 2 + 1) {
        for (int times = 0; times < (n < 4 << 20 ? 1 : 30); times++) {
            copy_here(b, n);
            copy_there(b, n);
            move_here(b, n);
            wrong += memcmp(b, from, n) != 0;
            fill_here(b, n);
            zero_here(b, n);
        }
    }
}

static void handler(int signal) {
    (void)signal;
    static char own[1 << 20];
    copy_there(own, sizeof own);
}

static void *thread(void *unused) {
    (void)unused;
    started = 1;
    while (!ready) __asm__ volatile("pause");
    all(to[1]);
    done = 1;
    /* Its end would be system calls of the program's own. */
    while (done) __asm__ volatile("pause");
    return NULL;
}

int main(int arguments, char **argument) {
    const char *how = arguments > 1 ? argument[1] : "";
    pthread_t other;
    if (pthread_create(&other, NULL, thread, NULL)) return 1;
    while (!started) __asm__ volatile("pause");
    struct sigaction trapping = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    struct sigaction handling = {.sa_handler = handler};
    if (sigaction(SIGSYS, &trapping, 0) || sigaction(SIGPROF, &handling, 0)) return 1;
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof rules / sizeof *rules, .filter = rules};
    pid_t me = getpid(), self = gettid();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 1;
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter)) return 77;
    ready = 1;
    if (strcmp(how, "filter") == 0) syscall(SYS_getppid);
    syscall(SYS_tgkill, me, self, SIGPROF);
    all(to[0]);
    syscall(SYS_tgkill, me, self, SIGPROF);
    while (!done) __asm__ volatile("pause");
    say("middle", 0);
    if (wrong) return 5;
    if (strcmp(how, "end") == 0) {
        count = 0;
        ends = 1;
        exit(0);
    }
    syscall(SYS_exit_group, 0);
}
