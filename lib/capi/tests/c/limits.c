/* The first call leaves nothing mapped; threads of a call take no signals; a system that refuses threads gets the work
 * done all the same. */
#define _GNU_SOURCE
#include <cachewise.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { SIZE = 32 << 20 };
static pthread_t first;
static volatile sig_atomic_t signals, strange;

static int mapped(void) {
    char text[65536], *at = text;
    int lines = 0;
    size_t length;
    FILE *maps = fopen("/proc/self/maps", "r");
    setvbuf(maps, NULL, _IONBF, 0);
    length = fread(text, 1, sizeof text - 1, maps);
    fclose(maps);
    text[length] = 0;
    while ((at = strchr(at, '\n')) != NULL)
        at++, lines++;
    return lines;
}

static void handle(int number) {
    (void)number;
    signals++;
    strange += !pthread_equal(pthread_self(), first);
}

static int refuse_threads(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void *none(void *argument) { return argument; }

int main(void) {
    unsigned char *src = malloc(SIZE), *dst = malloc(SIZE);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    pthread_t thread;
    int before, i;
    memset(src, 5, SIZE), memset(dst, 6, SIZE);
    first = pthread_self();
    before = mapped();
    before = mapped();
    cw_copy(dst, src, 70000);
    if (mapped() != before)
        return printf("mapped: %d, then %d\n", before, mapped());
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    for (i = 0; i < 20 || (signals < 20 && i < 2000); i++) {
        cw_copy_parallel(dst, src, SIZE, CW_REUSE_UNKNOWN, 4);
        cw_zero_parallel(src, SIZE, CW_REUSE_NEVER, 4);
        if (memcmp(dst + 1, dst, SIZE - 1) || dst[0] != 5 || src[0] || memcmp(src + 1, src, SIZE - 1))
            return puts("wrong bytes");
        memset(src, 5, SIZE), memset(dst, 6, SIZE);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    if (strange)
        return printf("%d of %d signals in other threads\n", (int)strange, (int)signals);
    if (refuse_threads())
        return puts("threads refused: SKIPPED"), 0;
    if (pthread_create(&thread, NULL, none, NULL) != EAGAIN)
        return puts("a thread is not refused");
    cw_copy_parallel(dst, src, SIZE, CW_REUSE_UNKNOWN, 4);
    cw_zero_parallel(src, SIZE, CW_REUSE_NEVER, 4);
    if (memcmp(dst + 1, dst, SIZE - 1) || dst[0] != 5 || src[0] || memcmp(src + 1, src, SIZE - 1))
        return puts("wrong bytes without threads");
    puts("within its limits");
    return 0;
}
