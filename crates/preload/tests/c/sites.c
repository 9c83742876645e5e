// Call sites of large copies: sites OPERATIONS CALLS KILOBYTES
// OPERATIONS is a word of letters, one per call: c copy, m move, f fill, z zero, p mempcpy; each has a call site
// of its own. Afterwards every byte is checked. Further letters: t the same in two threads, k in a
// forked child too, s copies in signal handlers, d in a thread that ends after each round.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *operations;
static long calls;
static size_t size;

__attribute__((noinline)) void site_copy(char *to, const char *from) { memcpy(to, from, size); }
__attribute__((noinline)) void site_move(char *to, const char *from) { memmove(to, from, size); }
__attribute__((noinline)) void site_fill(char *to) { memset(to, 0x5A, size); }
__attribute__((noinline)) void site_zero(char *to) { memset(to, 0, size); }

__attribute__((noinline)) void site_mempcpy(char *to, const char *from) {
    if (mempcpy(to, from, size) != to + size) abort();
}

static void fail(const char *what, size_t at) {
    fprintf(stderr, "wrong byte %zu after %s\n", at, what);
    _exit(5);
}

static void check(const char *what, const char *to, int expected) {
    for (size_t i = 0; i < size; i++)
        if (to[i] != (char)(expected < 0 ? i * 7 + (i >> 12) : (size_t)expected)) fail(what, i);
    if (to[-1] != 'x' || to[size] != 'x') fail("a byte outside", 0);
}

static void rounds(char *to, const char *from, long count) {
    for (long i = 0; i < count; i++) {
        for (const char *letter = operations; *letter; letter++) {
            switch (*letter) {
                case 'c': site_copy(to, from); if (i % 16 == 0) check("copy", to, -1); break;
                case 'p': site_mempcpy(to, from); if (i % 16 == 4) check("mempcpy", to, -1); break;
                case 'm': site_move(to, from); if (i % 16 == 1) check("move", to, -1); break;
                case 'f': site_fill(to); if (i % 16 == 2) check("fill", to, 0x5A); break;
                case 'z': site_zero(to); if (i % 16 == 3) check("zero", to, 0); break;
            }
        }
    }
}

static char *buffer(int source) {
    char *start = malloc(size + 128);
    if (!start) abort();
    start[63] = start[64 + size] = 'x';
    for (size_t i = 0; source && i < size; i++) start[64 + i] = (char)(i * 7 + (i >> 12));
    return start + 64;
}

static void *thread(void *count) {
    char *from = buffer(1), *to = buffer(0);
    rounds(to, from, *(long *)count);
    free(from - 64);
    free(to - 64);
    return NULL;
}

static char *handler_from, *handler_to;
static void handler(int number) {
    (void)number;
    site_copy(handler_to, handler_from);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    operations = arguments[1];
    calls = atol(arguments[2]);
    size = (size_t)atol(arguments[3]) << 10;
    if (strchr(operations, 's')) {
        handler_from = buffer(1);
        handler_to = buffer(0);
        signal(SIGALRM, handler);
        struct itimerval often = {{0, 700}, {0, 700}};
        setitimer(ITIMER_REAL, &often, NULL);
    }
    if (strchr(operations, 'd')) {
        long few = 3;
        for (long i = 0; i < calls; i += few) {
            pthread_t once;
            if (pthread_create(&once, NULL, thread, &few)) abort();
            pthread_join(once, NULL);
        }
    } else if (strchr(operations, 't')) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            if (pthread_create(&threads[i], NULL, thread, &calls)) abort();
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    } else {
        thread(&calls);
    }
    if (strchr(operations, 'k')) {
        pid_t child = fork();
        if (child == 0) {
            thread(&calls);
            exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (status) return 1;
    }
    puts("right");
    return 0;
}
