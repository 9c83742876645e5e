/* Calls at the moments when a library is least expected to work: in an IFUNC resolver, in a
 * constructor before main, in a signal handler, in a forked child, in threads that begin and end,
 * in a thread's destructor, in a function run at exit. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 300000 };
static unsigned char from[LARGE], to[LARGE];
static volatile size_t large = LARGE, small = 77;
static volatile sig_atomic_t signals;
static int constructed, resolved;

static void right(unsigned char *destination, size_t n, int seed, const char *when) {
    static const char wrong[] = "wrong bytes: ";
    int kept = errno = seed;
    memset(destination, seed, n);
    for (size_t i = 0; i < n; i += n / 7 + 1) {
        if (destination[i] != (unsigned char)seed || errno != kept) {
            (void)!write(1, wrong, sizeof wrong - 1);
            (void)!write(1, when, strlen(when));
            _exit(1);
        }
    }
    memcpy(destination, from, n);
    if (memcmp(destination, from, n) != 0 || errno != kept) {
        (void)!write(1, wrong, sizeof wrong - 1);
        (void)!write(1, when, strlen(when));
        _exit(1);
    }
}

static int answer(void) { return 42; }
static int (*resolve(void))(void) {
    right(to, large, 9, "resolver");
    right(to, small, 9, "resolver");
    resolved = 1;
    return answer;
}
int chosen(void) __attribute__((ifunc("resolve")));

__attribute__((constructor)) static void construct(void) {
    right(to, large, 1, "constructor");
    right(to, small, 2, "constructor");
    constructed = 1;
}
__attribute__((destructor)) static void destruct(void) { right(to, large, 3, "destructor"); }
static void leave(void) { right(to, large, 4, "atexit"); }

static void handle(int signal) {
    static unsigned char own[LARGE];
    (void)signal;
    int kept = errno;
    right(own, signals % 2 ? large : small, 5, "signal handler");
    errno = kept;
    signals++;
}

static pthread_key_t key;
static void forget(void *buffer) {
    right(buffer, 4096, 6, "thread's destructor");
    free(buffer);
}
static void *work(void *unused) {
    (void)unused;
    unsigned char *buffer = malloc(LARGE);
    for (int i = 0; i < 20; i++) {
        right(buffer, i % 2 ? large : small, i, "thread");
    }
    pthread_setspecific(key, buffer);
    return NULL;
}

int main(void) {
    if (!constructed || !resolved || chosen() != 42) {
        puts("no constructor or no resolver was run");
        return 1;
    }
    for (size_t i = 0; i < LARGE; i++) {
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    }
    atexit(leave);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned char *buffer = malloc(LARGE);
    for (int i = 0; signals < 100; i++) {
        /* errno is the handler's own business here: it puts it back. */
        memcpy(buffer, from, i % 3 ? large : small);
        if (memcmp(buffer, from, i % 3 ? large : small) != 0) {
            puts("wrong bytes: interrupted");
            return 1;
        }
    }
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);

    pthread_key_create(&key, forget);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) {
            if (pthread_create(&threads[i], NULL, work, NULL)) {
                return 1;
            }
        }
        pid_t child = fork();
        if (child == 0) {
            right(buffer, large, 8, "forked child");
            exit(0);
        }
        int status = 1;
        waitpid(child, &status, 0);
        if (status != 0) {
            puts("a child failed");
            return 1;
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
        }
    }
    puts("at every moment");
    return 0;
}
