/* Every length, alignment and overlap that a size class can go wrong at, through the symbols that
 * the dynamic linker finds; buffers between pages that cannot be touched. Compiled without
 * builtins, so that each call is a call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#define CHECK(condition, ...)                                                                     \
    do {                                                                                          \
        if (!(condition)) {                                                                       \
            printf(__VA_ARGS__);                                                                  \
            printf(": %s, line %d\n", #condition, __LINE__);                                      \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

enum { SMALL = 321, SPAN = 512 };

static unsigned char source[1 << 21], before[1 << 21], after[1 << 21], expected[1 << 21];

/* Bytes at a time, and nothing that the library under test replaces. */
static void plain_copy(unsigned char *to, const unsigned char *from, size_t n) {
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
        __asm__ volatile("" ::: "memory");
    }
}

static int differs(const unsigned char *a, const unsigned char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

static int sign(int value) { return (value > 0) - (value < 0); }

static void noise(unsigned char *buffer, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        buffer[i] = (unsigned char)(seed >> 24);
    }
}

/* A copy and a fill to each alignment; the bytes around the destination stay as they were. */
static void apart(size_t n, size_t to, size_t from) {
    size_t span = n + 160;
    for (int which = 0; which < 4; which++) {
        plain_copy(after, before, span);
        plain_copy(expected, before, span);
        plain_copy(expected + 64 + to, source + from, n);
        void *result = NULL, *wanted = after + 64 + to;
        switch (which) {
        case 0: result = memcpy(wanted, source + from, n); break;
        case 1: result = memmove(wanted, source + from, n); break;
        case 2:
            result = (unsigned char *)mempcpy(wanted, source + from, n) - n;
            break;
        case 3: result = memset(wanted, 0x1A5, n); memset(expected + 64 + to, 0xA5, 0);
            for (size_t i = 0; i < n; i++) expected[64 + to + i] = 0xA5;
            break;
        }
        CHECK(result == wanted, "function %d, %zu bytes, to %zu from %zu", which, n, to, from);
        CHECK(!differs(after, expected, span), "function %d, %zu bytes, to %zu from %zu", which, n,
              to, from);
    }
}

/* glibc's from 2.43 on. */
__attribute__((weak)) void *memset_explicit(void *, int, size_t);

static void zeroed(size_t n, size_t to) {
    size_t span = n + 160;
    for (int which = 0; which < 4; which++) {
        plain_copy(after, before, span);
        plain_copy(expected, before, span);
        for (size_t i = 0; i < n; i++) expected[64 + to + i] = 0;
        switch (which) {
        case 0: memset(after + 64 + to, 0, n); break;
        case 1: bzero(after + 64 + to, n); break;
        case 2: explicit_bzero(after + 64 + to, n); break;
        case 3:
            if (!memset_explicit) continue;
            CHECK(memset_explicit(after + 64 + to, 0, n) == after + 64 + to, "memset_explicit");
            break;
        }
        CHECK(!differs(after, expected, span), "zero %d, %zu bytes, to %zu", which, n, to);
    }
}

static void overlapping(size_t n, size_t from, size_t to) {
    size_t span = (from > to ? from : to) + n + 64;
    for (int which = 0; which < 2; which++) {
        plain_copy(after, before, span);
        plain_copy(expected, before, span);
        plain_copy(expected + to, before + from, n);
        void *result = which ? memmove(after + to, after + from, n)
                             : memcpy(after + to, after + from, n);
        CHECK(result == after + to, "overlap %d", which);
        CHECK(!differs(after, expected, span), "overlap %d, %zu bytes, from %zu to %zu", which, n,
              from, to);
    }
}

static void compared(size_t n, size_t a, size_t b) {
    unsigned char *left = after + a, *right = expected + b;
    plain_copy(left, source, n);
    plain_copy(right, source, n);
    left[n] = 1, right[n] = 2;
    CHECK(memcmp(left, right, n) == 0, "equal, %zu bytes at %zu and %zu", n, a, b);
    CHECK(bcmp(left, right, n) == 0, "equal, %zu bytes at %zu and %zu", n, a, b);
    size_t step = n < 70 ? 1 : n / 70;
    for (size_t at = 0; at < n; at += at + step < n || at + 1 == n ? step : n - 1 - at) {
        unsigned char kept = right[at];
        right[at] = (unsigned char)(kept ^ 0x80);
        int wanted = differs(left, right, n);
        CHECK(sign(memcmp(left, right, n)) == wanted, "%zu bytes, byte %zu", n, at);
        CHECK(sign(memcmp(right, left, n)) == -wanted, "%zu bytes, byte %zu", n, at);
        CHECK(bcmp(left, right, n) != 0, "%zu bytes, byte %zu", n, at);
        right[at] = kept;
    }
}

/* Buffers that start or end where a page that cannot be touched ends or starts. */
static void guarded(void) {
    const size_t page = 4096, room = 4 * page;
    unsigned char *pages[2];
    for (int i = 0; i < 2; i++) {
        pages[i] = mmap(NULL, room + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pages[i] != MAP_FAILED, "mmap");
        pages[i] += page;
        CHECK(!mprotect(pages[i], room, PROT_READ | PROT_WRITE), "mprotect");
        noise(pages[i], room, 5);
    }
    for (size_t n = 0; n <= room; n += n < 600 ? 1 : 509) {
        for (int ends = 0; ends < 4; ends++) {
            unsigned char *to = pages[0] + (ends & 1 ? room - n : 0);
            unsigned char *from = pages[1] + (ends & 2 ? room - n : 0);
            memcpy(to, from, n);
            CHECK(memcmp(to, from, n) == 0, "guarded, %zu bytes", n);
            memmove(to, from, n);
            CHECK(bcmp(to, from, n) == 0, "guarded, %zu bytes", n);
            memset(to, 7, n);
            bzero(to, n);
            CHECK(mempcpy(to, from, n) == to + n, "guarded, %zu bytes", n);
            CHECK(!differs(to, from, n), "guarded, %zu bytes", n);
        }
    }
}

int main(int count, char **arguments) {
    if (count > 1) {
        /* The symbols are those of the library under test. */
        static const char *const names[] = {"memcpy", "memmove", "memset",         "memcmp",
                                            "bcmp",   "bzero",   "explicit_bzero", "mempcpy",
                                            "memset_explicit"};
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            Dl_info found;
            void *address = dlsym(RTLD_DEFAULT, names[i]);
            CHECK(address && dladdr(address, &found), "%s", names[i]);
            CHECK(strstr(found.dli_fname, arguments[1]), "%s is in %s", names[i], found.dli_fname);
        }
    }
    noise(source, sizeof source, 1);
    noise(before, sizeof before, 2);
    /* A profile is read by a call that needs it. */
    if (count > 2) memcpy(after, before, sizeof after);
    for (size_t n = 0; n < SMALL; n++) {
        for (size_t to = 0; to < 34; to++) {
            for (size_t from = 0; from < 34; from += n % 4 ? 11 : 1) {
                apart(n, to, from);
            }
            zeroed(n, to);
        }
        for (size_t to = 0; to < SPAN; to += n % 8 ? 5 : 1) {
            overlapping(n, SPAN / 2, to);
        }
        compared(n, n % 17, n % 33);
    }
    static const size_t large[] = {511,   512,   1000,  2047,   4095,   4097,    8192,
                                   16385, 32768, 65537, 100001, 262144, 1048577, 1900000};
    static const size_t shifts[] = {1, 15, 16, 31, 33, 64, 127, 255, 256, 4095, 4096, 40000};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        for (size_t align = 0; align < 64; align += large[i] > 100000 ? 21 : 7) {
            apart(large[i], align, 63 - align);
            zeroed(large[i], align);
        }
        for (size_t j = 0; j < sizeof shifts / sizeof *shifts; j++) {
            overlapping(large[i], shifts[j], 0);
            overlapping(large[i], 0, shifts[j]);
        }
        if (large[i] < 200000) {
            compared(large[i], i, 2 * i);
        }
    }
    guarded();
    puts("every byte right");
    return 0;
}
