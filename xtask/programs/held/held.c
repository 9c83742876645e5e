/* Programs whose memory is known, as services: `held MODE SOCKET` listens and does its work once for each connection;
 * `held load SOCKET` is one connection, which ends when the work is done. Each server writes what is live after each load, in
 * bytes, into the first of `live-1`, `live-2`, ... that is not there yet. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { THREADS = 8, SLOTS = 400, MIB = 1 << 20 };
static long live;
#ifdef RJEM /* a static jemalloc with a prefix, as Rust programs have it */
void *_rjem_malloc(size_t);
void _rjem_free(void *);
static void *(*own_malloc)(size_t) = _rjem_malloc;
static void (*own_free)(void *) = _rjem_free;
#else
static void *(*own_malloc)(size_t) = malloc;
static void (*own_free)(void *) = free;
#endif

static void *taken(size_t size)
{
    char *block = own_malloc(size);
    if (!block)
        abort();
    memset(block, 1, size);
    live += size;
    return block;
}

static void given(void *block, size_t size)
{
    own_free(block);
    live -= size;
}

/* Many small blocks, of which one in `keep` stays; the others are freed. One large block may be taken between. */
static void *between(long bytes, int keep, long large)
{
    enum { SIZE = 1000 };
    long count = bytes / SIZE;
    void **all = malloc(count * sizeof *all);
    for (long at = 0; at < count; at++)
        all[at] = taken(SIZE);
    void *last = large ? taken(large) : 0;
    for (long at = 0; at < count; at++)
        if (!keep || at % keep)
            given(all[at], SIZE);
    free(all);
    return last;
}

static void churn(long bytes, int keep) { between(bytes, keep, 0); }

/* What stays of a thread until the next load: one block in twenty. */
static char *kept[THREADS][SLOTS];
static long sizes[THREADS][SLOTS];

static void *worker(void *which)
{
    long own = (long)which;
    unsigned state = own * 7919 + 1;
    char **block = kept[own];
    for (int turn = 0; turn < 20000; turn++) {
        int at = rand_r(&state) % SLOTS;
        free(block[at]);
        long size = rand_r(&state) % 100 < 97 ? 64 + rand_r(&state) % 8000 : 20000 + rand_r(&state) % 90000;
        memset(block[at] = malloc(size), 1, sizes[own][at] = size);
    }
    for (int at = 0; at < SLOTS; at++)
        if (at % 20) {
            free(block[at]);
            block[at] = 0, sizes[own][at] = 0;
        }
    return 0;
}

/* Growing arenas: threads that keep little. */
static void arenas(void)
{
    pthread_t thread[THREADS];
    live = 0;
    for (long at = 0; at < THREADS; at++)
        pthread_create(thread + at, 0, worker, (void *)at);
    for (int at = 0; at < THREADS; at++)
        pthread_join(thread[at], 0);
    for (int at = 0; at < THREADS * SLOTS; at++)
        live += sizes[at / SLOTS][at % SLOTS];
}

/* One block above everything that is freed. */
static void top(void)
{
    static void *last;
    if (last)
        given(last, 100000);
    last = between(64 * MIB, 0, 100000);
}

/* The thresholds move up with the first large block that is freed; from then on such blocks come from the heap. */
static void thresholds(void)
{
    static void *pin[3];
    given(taken(30 * MIB), 30 * MIB);
    void *large[3];
    for (int at = 0; at < 3; at++) {
        large[at] = taken(25 * MIB);
        if (!pin[at])
            pin[at] = taken(1000);
    }
    for (int at = 0; at < 3; at++)
        given(large[at], 25 * MIB);
}

/* As `churn`, but what stays is freed by the next load. */
static void turned(long bytes, int keep, int which)
{
    enum { SIZE = 1000 };
    static void **all[2];
    long count = bytes / SIZE;
    if (!all[which])
        all[which] = calloc(count, sizeof(void *));
    for (long at = 0; at < count; at++)
        if (all[which][at])
            given(all[which][at], SIZE);
    for (long at = 0; at < count; at++)
        all[which][at] = taken(SIZE);
    for (long at = 0; at < count; at++)
        if (at % keep) {
            given(all[which][at], SIZE);
            all[which][at] = 0;
        }
}

static void leak(void) { churn(40 * MIB, 2); }

/* A cache of a fixed size, filled again by each load. */
static void cache(void)
{
    static void *block[5000];
    for (int at = 0; at < 5000; at++) {
        if (block[at])
            given(block[at], 16000);
        block[at] = taken(16000);
    }
}

static void idle(void) { turned(80 * MIB, 50, 0); }

/* Linked with another allocator, and with glibc's beside it, as C in a Rust program. */
void *__libc_malloc(size_t);
void __libc_free(void *);

static void two(void)
{
    turned(40 * MIB, 10, 0);
    own_malloc = __libc_malloc, own_free = __libc_free;
    turned(40 * MIB, 10, 1);
    own_malloc = malloc, own_free = free;
}

static void lazy(void)
{
    static char *all;
    if (!all)
        all = mmap(0, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(all, 1, 64 * MIB);
    madvise(all, 64 * MIB, MADV_FREE);
    static void *block;
    if (!block)
        block = taken(20 * MIB);
}

static const struct { const char *name; void (*work)(void); } modes[] = {
    {"arenas", arenas}, {"top", top}, {"thresholds", thresholds}, {"leak", leak}, {"cache", cache},
    {"idle", idle}, {"two", two}, {"lazy", lazy},
};

int main(int count, char **word)
{
    if (count < 3)
        return 2;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, word[2], sizeof address.sun_path - 1);
    int listens = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), size = sizeof address;
    char byte = 0;
    if (!strcmp(word[1], "load"))
        return connect(listens, (struct sockaddr *)&address, size) || read(listens, &byte, 1) != 1;
    void (*work)(void) = 0;
    for (size_t at = 0; at < sizeof modes / sizeof *modes; at++)
        if (!strcmp(word[1], modes[at].name))
            work = modes[at].work;
    unlink(word[2]);
    if (!work || bind(listens, (struct sockaddr *)&address, size) || listen(listens, 8))
        return 2;
    char name[20];
    FILE *out = 0;
    for (int number = 1; !out; number++) {
        snprintf(name, sizeof name, "live-%d", number);
        out = fopen(name, "wx");
    }
    for (;;) {
        int one = accept(listens, 0, 0);
        work();
        fprintf(out, "%ld\n", live);
        fflush(out);
        if (write(one, &byte, 1) != 1)
            return 1;
        close(one);
    }
}
