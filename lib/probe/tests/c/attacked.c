/* `attacked WAIT`: waits for ever in a system call and ends with 3 if that ever returns, with 7 by SIGTERM.
 * Other words: a program in a state in which it is dangerous to be asked. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void ended(int signal) { (void)signal; _exit(7); }

static void *busy(void *seed)
{
    unsigned state = (long)seed + 1;
    void *block[64] = {0};
    for (int turn = 0; turn < 1000000; turn++) {
        int at = rand_r(&state) % 64;
        free(block[at]);
        block[at] = malloc(rand_r(&state) % 3000);
    }
    return 0;
}

int main(int count, char **word)
{
    (void)count;
    char *mode = word[1], *kept[300];
    signal(SIGTERM, ended);
    for (int at = 0; at < 300; at++)
        memset(kept[at] = malloc(99000), 1, 99000);
    for (int at = 0; at < 299; at++)
        free(kept[at]);
    struct timespec hour = {3600, 0};
    struct epoll_event event;
    sigset_t set;
    sem_t never;
    int pipes[2];
    if (pipe(pipes) || sem_init(&never, 0, 0))
        return 2;
    if (!strcmp(mode, "poll"))
        poll(0, 0, -1);
    else if (!strcmp(mode, "epoll"))
        epoll_wait(epoll_create1(0), &event, 1, -1);
    else if (!strcmp(mode, "epoll-timeout"))
        epoll_wait(epoll_create1(0), &event, 1, 3600000);
    else if (!strcmp(mode, "select"))
        select(0, 0, 0, 0, 0);
    else if (!strcmp(mode, "nanosleep"))
        nanosleep(&hour, 0);
    else if (!strcmp(mode, "read"))
        read(pipes[0], word, 1);
    else if (!strcmp(mode, "pause"))
        pause();
    else if (!strcmp(mode, "semaphore"))
        sem_wait(&never);
    else if (!strcmp(mode, "timed-semaphore"))
        clock_gettime(CLOCK_REALTIME, &hour), hour.tv_sec += 3600, sem_timedwait(&never, &hour);
    else if (!strcmp(mode, "sigwait"))
        sigemptyset(&set), sigaddset(&set, SIGUSR1), sigprocmask(SIG_BLOCK, &set, 0), sigwaitinfo(&set, 0);
    else if (!strcmp(mode, "child")) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            pause();
        }
        /* Asked meanwhile, it waits for its own child alone. */
        return wait(0) > 0 ? 3 : 4;
    } else if (!strcmp(mode, "daemon")) {
        if (fork() || (setsid(), fork()))
            return 0;
        pause();
    } else if (!strcmp(mode, "busy")) {
        pthread_t thread[3];
        for (long at = 0; at < 3; at++)
            pthread_create(thread + at, 0, busy, (void *)at);
        busy((void *)9);
        for (int at = 0; at < 3; at++)
            pthread_join(thread[at], 0);
        return 0;
    } else if (!strcmp(mode, "computes")) {
        for (volatile unsigned long turn = 0;; turn++)
            ;
    } else if (!strcmp(mode, "blocked"))
        sigfillset(&set), sigdelset(&set, SIGTERM), sigsuspend((sigprocmask(SIG_BLOCK, &set, 0), &set));
    else if (!strcmp(mode, "seccomp")) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog filter = {1, &allow};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
            return 2;
        pause();
    }
    return 3;
}
