/* Every allocation function at sizes around the pool's limits, threads, forks and wrong ends; prints
 * what must be the same with the pool and without. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Before this program's main, and before some constructors: the allocator has to work there. */
static char *early;
__attribute__((constructor)) static void before_main(void)
{
    early = calloc(1, 300000);
    CHECK(early != NULL);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void all_zero(const unsigned char *bytes, size_t length)
{
    CHECK(bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static void all(const unsigned char *bytes, size_t length, int value)
{
    CHECK(bytes[0] == (unsigned char)value && memcmp(bytes, bytes + 1, length - 1) == 0);
}

#define SLOTS 12

static void churn(unsigned seed, int rounds)
{
    struct { unsigned char *block; size_t length; int value; } slot[SLOTS];
    memset(slot, 0, sizeof slot);
    for (int round = 0; round < rounds; round++) {
        unsigned at = next_random(&seed) % SLOTS;
        size_t length = 1 + next_random(&seed) % (next_random(&seed) % 3 ? 900000 : 5000);
        int kind = next_random(&seed) % 7, value = round % 255 + 1;
        unsigned char *block = slot[at].block;
        if (kind == 0 && block != NULL) {
            size_t kept = length < slot[at].length ? length : slot[at].length;
            block = realloc(block, length);
            CHECK(block != NULL);
            all(block, kept, slot[at].value);
        } else {
            if (block != NULL)
                all(block, slot[at].length, slot[at].value);
            free(block);
            errno = 77;
            if (kind == 1) {
                block = malloc(length);
            } else if (kind == 2) {
                CHECK(posix_memalign((void **)&block, 4096, length) == 0);
                CHECK((uintptr_t)block % 4096 == 0);
            } else if (kind == 3) {
                size_t align = (size_t)16 << next_random(&seed) % 9;
                length = (length + align - 1) / align * align;
                block = aligned_alloc(align, length);
                CHECK((uintptr_t)block % align == 0);
            } else if (kind == 4) {
                block = reallocarray(NULL, (length + 6) / 7, 7);
            } else {
                block = calloc((length + 6) / 7, 7);
                CHECK(block != NULL);
                all_zero(block, length);
            }
        }
        CHECK(block != NULL && malloc_usable_size(block) >= length);
        memset(block, value, length);
        slot[at].block = block;
        slot[at].length = length;
        slot[at].value = value;
    }
    errno = 77;
    for (int at = 0; at < SLOTS; at++)
        free(slot[at].block);
    CHECK(errno == 77);
}

static void *thread(void *seed)
{
    churn((unsigned)(uintptr_t)seed, 1500);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[4];
    all_zero((unsigned char *)early, 300000);
    free(early);
    if (count > 1 && strcmp(arguments[1], "twice") == 0) {
        char *volatile block = malloc(300000);
        char *again = block;
        free(block);
        free(again);
        return 0;
    }
    churn(1, 1500);
    for (uintptr_t at = 0; at < 4; at++)
        CHECK(pthread_create(&threads[at], NULL, thread, (void *)(at + 2)) == 0);
    for (int round = 0; round < 8; round++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            churn(round + 100, 200);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], NULL);
    volatile size_t huge = SIZE_MAX / 2;
    CHECK(calloc(huge, 3) == NULL && errno == ENOMEM);
    CHECK(reallocarray(NULL, huge, 3) == NULL);
    char *block = malloc(1 << 20);
    CHECK(realloc(block, 0) == NULL);
    char *volatile line = malloc(200000);
    CHECK(snprintf(line, 200000, "%s", "all sizes hold") > 0);
    puts(line);
    free(line);
    free(valloc(200000));
    free(memalign(64, 200000));
    free(pvalloc(200000));
    return 0;
}
