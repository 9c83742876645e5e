/* Interrupts the first call of a process, many times, with a signal handler that makes calls itself.
 * The trap flag makes every instruction raise SIGTRAP; at every 97th from a chosen one on the handler
 * works, otherwise it returns. Each choice has a process of its own, since the first call of one is
 * what is to be interrupted: an early one finds nothing begun and does the first call's work, later
 * ones find it under way. */
#define _GNU_SOURCE
#include <cachewise.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 700, EVERY = 97 };
static unsigned char from[LARGE], to[LARGE], own[LARGE];
/* The small stack that handlers usually get. */
static unsigned char room[16 << 10];
static const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
static volatile long chosen, step, worked;
static volatile size_t large = LARGE;

static void check(int condition)
{
    if (!condition) {
        static const char told[] = "wrong bytes or errno\n";
        (void)!write(1, told, sizeof told - 1);
        _exit(3);
    }
}

static void handle(int signal)
{
    (void)signal;
    if (step++ >= chosen && (step - chosen) % EVERY == 1) {
        worked++;
        int kept = errno;
        errno = 5;
        cw_copy(own, from, large);
        check(errno == 5 && memcmp(own, from, LARGE) == 0);
        cw_zero(own, large);
        check(errno == 5 && own[0] == 0 && own[LARGE - 1] == 0);
        cw_init();
        check(cw_compare(own, from, large) != 0 && errno == 5);
        errno = kept;
    }
}

/* How often the handler worked. */
static long interrupted(long from_step)
{
    struct sigaction action;
    chosen = from_step;
    step = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&stack, NULL);
    sigaction(SIGTRAP, &action, NULL);
    errno = 9;
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "cc", "memory");
    cw_copy(to, from, large);
    __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "cc", "memory");
    check(errno == 9 && memcmp(to, from, LARGE) == 0);
    return worked;
}

int main(void)
{
    static const long from_steps[] = {0, 20, 100, 1000, 10000};
    long times = 0;
    size_t i;
    int ends[2], status;
    for (i = 0; i < LARGE; i++) {
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    if (pipe(ends)) {
        return 1;
    }
    for (i = 0; i < sizeof from_steps / sizeof *from_steps; i++) {
        long worked_here = 0;
        pid_t child = fork();
        if (child == 0) {
            worked_here = interrupted(from_steps[i]);
            _exit(write(ends[1], &worked_here, sizeof worked_here) == sizeof worked_here ? 0 : 4);
        }
        if (waitpid(child, &status, 0) != child || status != 0) {
            printf("interrupted from instruction %ld on: status %d\n", from_steps[i], status);
            return 1;
        }
        if (read(ends[0], &worked_here, sizeof worked_here) != sizeof worked_here) {
            return 1;
        }
        times += worked_here;
    }
    printf("%s\n", times > 100 ? "interrupted everywhere" : "the first call was too short");
    return times > 100 ? 0 : 1;
}
