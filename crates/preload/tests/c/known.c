// Programs whose best way to copy is known: known PROGRAM CALLS KILOBYTES
// Each copies at one place, copied_here, and does with the copies what its name says. Prints a sum of
// all that was read and of how all buffers ended; the time of its loops goes to stderr. The answers are
// those of the issue on learning; `xtask learn-known` finds out what they are on the machine at hand.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Destinations in turn, so that none is cached from the last time by accident of its size.
#define RING 8

static size_t size;
static long calls;

__attribute__((noinline)) void copied_here(char *to, const char *from, size_t n) { memcpy(to, from, n); }

struct worker {
    void (*round)(struct worker *, long);
    char *from, *ring[RING], *other;
    size_t other_size;
    uint64_t sum, state;
    pthread_t thread;
};

static void read_all(struct worker *w, const char *at, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        // Not a call: those of 8 bytes would take ten times as long as the memory.
        __builtin_memcpy(&word, at + i, 8);
        sum += word;
    }
    w->sum = w->sum * 31 + sum;
}

static void compute(struct worker *w, long steps) {
    uint64_t x = w->state | 1;
    for (long i = 0; i < steps; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    w->state = x;
}

static char *copy(struct worker *w, long call, size_t n) {
    char *to = w->ring[call % RING];
    copied_here(to, w->from + call % 64 * 64, n);
    return to;
}

static void read_at_once(struct worker *w, long call) { read_all(w, copy(w, call, size), size); }
static void read_late(struct worker *w, long call) {
    copy(w, call, size);
    read_all(w, w->ring[(call + RING - 3) % RING], size);
}
static void read_in_part(struct worker *w, long call) { read_all(w, copy(w, call, size), size / 4); }
static void never_read(struct worker *w, long call) { copy(w, call, size); }
static void bystander(struct worker *w, long call) {
    copy(w, call, size);
    read_all(w, w->other, w->other_size);
}
static void written_after(struct worker *w, long call) {
    char *to = copy(w, call, size);
    for (size_t i = 0; i < size; i += 8) to[i] += (char)call;
}
static void two_phases(struct worker *w, long call) {
    char *to = copy(w, call, size);
    if (call < calls / 2) read_all(w, to, size);
}
static void mixed_sizes(struct worker *w, long call) {
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    // From half the size to the size: two octaves where that is a power of two less a bit.
    size_t n = (size / 2 + (w->state >> 33) % (size / 2)) & ~(size_t)63;
    read_all(w, copy(w, call, n), n);
}
static void period_of_four(struct worker *w, long call) {
    copy(w, call, size);
    compute(w, call % 4 == 0 ? (long)size / 4 : (long)size / 64);
}

static const struct {
    const char *name;
    void (*round)(struct worker *, long);
    int threads;
} programs[] = {
    {"read-at-once", read_at_once, 1},   {"read-late", read_late, 1},
    {"read-in-part", read_in_part, 1},   {"never-read", never_read, 1},
    {"bystander", bystander, 1},         {"written-after", written_after, 1},
    {"two-phases", two_phases, 1},       {"two-threads", read_at_once, 2},
    {"mixed-sizes", mixed_sizes, 1},     {"period-of-four", period_of_four, 1},
};

static char *buffer(size_t n, int fill) {
    char *start = aligned_alloc(4096, (n + 8191) & ~(size_t)4095);
    if (!start) abort();
    for (size_t i = 0; i < n; i++) start[i] = fill ? (char)(i * 7 + (i >> 12)) : 0;
    return start;
}

static void *work(void *of) {
    struct worker *w = of;
    for (long call = 0; call < calls; call++) w->round(w, call);
    return NULL;
}

int main(int count, char **arguments) {
    struct worker workers[2];
    struct timespec begin, end;
    size_t which = 0, all = sizeof programs / sizeof *programs;
    if (count != 4) return 2;
    while (which < all && strcmp(programs[which].name, arguments[1])) which++;
    if (which == all) return 2;
    calls = atol(arguments[2]);
    size = (size_t)atol(arguments[3]) << 10;
    for (int i = 0; i < programs[which].threads; i++) {
        struct worker *w = &workers[i];
        w->round = programs[which].round;
        w->from = buffer(size + 4096, 1);
        for (int j = 0; j < RING; j++) w->ring[j] = buffer(size, 0);
        w->other_size = programs[which].round == bystander ? 2 * size : 0;
        w->other = buffer(w->other_size, 1);
        w->sum = w->state = 0;
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 1; i < programs[which].threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) abort();
    work(&workers[0]);
    for (int i = 1; i < programs[which].threads; i++) pthread_join(workers[i].thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "seconds %.6f\n",
            (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
    uint64_t sum = 0;
    for (int i = 0; i < programs[which].threads; i++) {
        for (int j = 0; j < RING; j++) read_all(&workers[i], workers[i].ring[j], size);
        sum = sum * 37 + workers[i].sum + workers[i].state;
    }
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
