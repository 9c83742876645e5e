/* What the standard and glibc's manual say of each function, at the sizes where it is easily got wrong.
 * The same text with a pool, without one, and without the library. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__, #what, errno); \
            _exit(1); \
        } \
    } while (0)

static const size_t sizes[] = {
    0, 1, 15, 16, 4095, 4096, 4097, 131071, 131072, 131073, 200000, 1 << 20, (1 << 20) + 1,
    (5 << 20) - 1, (9 << 20) + 4097,
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void fails(void *block)
{
    CHECK(block == NULL && errno == ENOMEM);
    errno = 0;
}

static void filled(unsigned char *block, size_t length, int value)
{
    for (size_t at = 0; at < length; at++)
        CHECK(block[at] == (unsigned char)value);
}

/* Each size to each: what was in the shorter of the two is kept. */
static void resized(void)
{
    for (int from = 0; from < SIZES; from++)
        for (int to = 0; to < SIZES; to++) {
            size_t before = sizes[from], after = sizes[to], kept = before < after ? before : after;
            unsigned char *block = malloc(before), *now;
            CHECK(block != NULL && malloc_usable_size(block) >= before);
            memset(block, 0x5C, before);
            now = realloc(block, after);
            if (after == 0) {
                CHECK(now == NULL);
                continue;
            }
            CHECK(now != NULL && (uintptr_t)now % 16 == 0 && malloc_usable_size(now) >= after);
            filled(now, kept, 0x5C);
            memset(now, 1, malloc_usable_size(now));
            free(now);
        }
}

static void aligned(void)
{
    for (size_t align = 16; align <= (size_t)4 << 20; align *= 2)
        for (int at = 0; at < SIZES; at++) {
            void *block = NULL;
            CHECK(posix_memalign(&block, align, sizes[at]) == 0);
            CHECK((uintptr_t)block % align == 0 && malloc_usable_size(block) >= sizes[at]);
            memset(block, 3, sizes[at]);
            free(block);
            block = aligned_alloc(align, sizes[at]);
            CHECK(block != NULL && (uintptr_t)block % align == 0);
            memset(block, 3, sizes[at]);
            free(block);
            block = memalign(align, sizes[at]);
            CHECK(block != NULL && (uintptr_t)block % align == 0);
            block = realloc(block, sizes[at] + 300000);
            CHECK(block != NULL);
            free(block);
        }
    for (int at = 0; at < SIZES; at++) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        void *block = valloc(sizes[at]);
        CHECK(block != NULL && (uintptr_t)block % page == 0);
        free(block);
        block = pvalloc(sizes[at]);
        CHECK(block != NULL && (uintptr_t)block % page == 0);
        CHECK(malloc_usable_size(block) >= (sizes[at] + page - 1) / page * page);
        free(block);
    }
}

static void refused(void)
{
    volatile size_t most = PTRDIFF_MAX, all = SIZE_MAX, half = SIZE_MAX / 2 + 2;
    void *kept = (void *)&most, *block = malloc(200000);
    memset(block, 9, 200000);
    errno = 0;
    fails(malloc(most + 1));
    fails(malloc(all));
    fails(calloc(1, most + 1));
    fails(calloc(half, 2));
    fails(calloc(all, all));
    fails(realloc(block, most + 1));
    fails(realloc(block, all));
    fails(reallocarray(block, half, 2));
    fails(reallocarray(block, all, 200000));
    fails(aligned_alloc(64, all - 63));
    fails(memalign(4096, all - 100));
    fails(valloc(all));
    fails(pvalloc(all));
    filled(block, 200000, 9);
    free(block);
    /* posix_memalign says it by what it returns, and leaves errno and the place alone. */
    errno = 77;
    CHECK(posix_memalign(&kept, 64, all - 63) == ENOMEM && kept == (void *)&most);
    CHECK(posix_memalign(&kept, 3, 200000) == EINVAL && kept == (void *)&most);
    CHECK(posix_memalign(&kept, 4, 200000) == EINVAL && kept == (void *)&most);
    CHECK(posix_memalign(&kept, 24, 200000) == EINVAL && kept == (void *)&most);
    CHECK(posix_memalign(&kept, 0, 200000) == EINVAL && kept == (void *)&most);
}

static void small_print(void)
{
    unsigned char *block = malloc(3 << 20), *zeroed;
    void *none = malloc(0), *other = malloc(0);
    CHECK(none != NULL && other != NULL && none != other);
    free(none);
    free(other);
    free(calloc(0, 200000));
    free(calloc(200000, 0));
    CHECK(malloc_usable_size(NULL) == 0);
    errno = 77;
    free(NULL);
    free(block);
    block = malloc(3 << 20);
    CHECK(errno == 77 && block != NULL);
    memset(block, 0xEE, 3 << 20);
    free(block);
    for (int round = 0; round < 20; round++) {
        zeroed = calloc(3, 1 << 20);
        CHECK(zeroed != NULL);
        filled(zeroed, 3 << 20, 0);
        memset(zeroed, 0xDD, 3 << 20);
        free(zeroed);
    }
    block = realloc(NULL, 300000);
    CHECK(block != NULL);
    CHECK(reallocarray(block, 0, 5) == NULL);
    CHECK(errno == 77);
}

/* C23's, which not every C library has. */
void free_sized(void *, size_t) __attribute__((weak));
void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static void freed_with_their_size(void)
{
    if (getenv("LD_PRELOAD") == NULL && (free_sized == NULL || free_aligned_sized == NULL))
        return;
    CHECK(free_sized != NULL && free_aligned_sized != NULL);
    errno = 77;
    free_sized(NULL, 0);
    free_aligned_sized(NULL, 64, 64);
    for (int at = 0; at < SIZES; at++)
        for (int round = 0; round < 40; round++) {
            unsigned char *block = calloc(1, sizes[at]);
            CHECK(block != NULL);
            filled(block, sizes[at], 0);
            memset(block, 5, sizes[at]);
            free_sized(block, sizes[at]);
            block = aligned_alloc(4096, sizes[at]);
            CHECK(block != NULL);
            free_aligned_sized(block, 4096, sizes[at]);
        }
    CHECK(errno == 77);
}

int main(void)
{
    resized();
    aligned();
    refused();
    small_print();
    freed_with_their_size();
    puts("contract holds");
    return 0;
}
