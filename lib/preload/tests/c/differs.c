/* Calls at the edges of what C promises, a line each: result and bytes, or the signal. A call of its own
 * for each case, in a child, so that a fault ends no other. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 5, BYTES = PAGE * PAGES };
static unsigned char *area;

static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile move)(void *, const void *, size_t) = memmove;
static void *(*volatile past)(void *, const void *, size_t) = mempcpy;
static void *(*volatile fill)(void *, int, size_t) = memset;
static int (*volatile compare)(const void *, const void *, size_t) = memcmp;
static int (*volatile equal)(const void *, const void *, size_t) = bcmp;
static void (*volatile clear)(void *, size_t) = bzero;

/* Pages 0 and 4 may not be touched; 1 to 3 hold bytes. */
static void fresh(void) {
    area = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        exit(9);
    for (int at = 0; at < BYTES; at++)
        area[at] = (unsigned char)(at * 7 + at / 251);
    mprotect(area, PAGE, PROT_NONE);
    mprotect(area + 4 * PAGE, PAGE, PROT_NONE);
}

static uint64_t sum(void) {
    uint64_t all = 14695981039346656037u;
    for (int at = PAGE; at < 4 * PAGE; at++)
        all = (all ^ area[at]) * 1099511628211u;
    return all;
}

static void said(const char *name, long to, long from, size_t n, void *result) {
    char place[32] = "null";
    if (result)
        snprintf(place, sizeof place, "%ld", (long)((unsigned char *)result - area));
    printf("%s %ld %ld %zu: %s %016llx\n", name, to, from, n, place, (unsigned long long)sum());
}

static void *at(long place) { return place < 0 ? 0 : area + place; }

/* One call of each, where every byte of both may be touched. */
static void all(long to, long from, size_t n) {
    fresh(), said("copy", to, from, n, copy(at(to), at(from), n)), munmap(area, BYTES);
    fresh(), said("move", to, from, n, move(at(to), at(from), n)), munmap(area, BYTES);
    fresh(), said("past", to, from, n, past(at(to), at(from), n)), munmap(area, BYTES);
    fresh(), said("fill", to, from, n, fill(at(to), 0x1A5, n)), munmap(area, BYTES);
    fresh(), said("fill with 0", to, from, n, fill(at(to), 0x100, n)), munmap(area, BYTES);
    fresh(), clear(at(to), n), said("clear", to, from, n, 0), munmap(area, BYTES);
    fresh();
    int signs[2] = {compare(at(to), at(from), n), equal(at(to), at(from), n)};
    printf("compare %ld %ld %zu: %d %d\n", to, from, n, (signs[0] > 0) - (signs[0] < 0),
           (signs[1] > 0) - (signs[1] < 0));
    munmap(area, BYTES);
}

static void itself(int which, size_t n) {
    fresh();
    void *place = area + PAGE;
    mprotect(place, 3 * PAGE, PROT_READ);
    said("read-only", PAGE, PAGE, n,
         which == 0 ? copy(place, place, n) : which == 1 ? move(place, place, n) : past(place, place, n));
    fflush(stdout);
    _exit(0);
}

int main(void) {
    static const size_t sizes[] = {0,  1,  2,  3,   4,   7,   8,   15,  16,  17,  31,  32,   33,
                                   47, 64, 65, 127, 128, 129, 200, 256, 257, 384, 500, 1000, 4096};
    for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
        size_t n = sizes[at];
        long low = PAGE, high = 4 * PAGE - (long)n, middle = 2 * PAGE + 5;
        all(low, high, n), all(high, low, n), all(low, low, n), all(high, high, n);
        for (long apart = 1; apart <= 300; apart = apart * 2 + 1)
            all(middle, middle + apart, n), all(middle + apart, middle, n);
    }
    for (int null = 0; null < 3; null++)
        all(null == 1 ? PAGE : -1, null == 2 ? PAGE : -1, 0);
    fflush(stdout);
    for (int which = 0; which < 3; which++)
        for (size_t n = 0; n <= 3 * PAGE; n += n < 600 ? 1 : 97) {
            int status;
            pid_t child = fork();
            if (child == 0)
                itself(which, n);
            waitpid(child, &status, 0);
            if (WIFSIGNALED(status))
                printf("read-only %d %zu: signal %d\n", which, n, WTERMSIG(status));
            fflush(stdout);
        }
    return 0;
}
