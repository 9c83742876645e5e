/* Every allocation function called for the first time by many threads at the same moment. A block of
 * the program's own allocator must keep its contents, its length and its alignment; nothing may fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { THREADS = 8, LENGTH = 300 };
static int ready, go;

static void all(const unsigned char *bytes, size_t length, int value)
{
    CHECK(bytes[0] == value && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static void *first(void *number)
{
    uintptr_t turn = (uintptr_t)number;
    void *aligned = NULL;
    unsigned char *block = malloc(LENGTH), *zeroed;
    CHECK(block != NULL);
    memset(block, 7, LENGTH);
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&go, __ATOMIC_SEQ_CST))
        sched_yield();
    /* Each thread begins elsewhere, so that each function is somebody's first. */
    for (int at = 0; at < 8; at++) {
        switch ((turn + at) % 8) {
        case 0:
            block = realloc(block, 4096);
            CHECK(block != NULL);
            all(block, LENGTH, 7);
            CHECK(malloc_usable_size(block) >= 4096);
            break;
        case 1:
            CHECK(posix_memalign(&aligned, 256, 600000) == 0 && (uintptr_t)aligned % 256 == 0);
            free(aligned);
            break;
        case 2:
            CHECK(malloc_usable_size(block) >= LENGTH);
            break;
        case 3:
            aligned = aligned_alloc(128, 1280);
            CHECK(aligned != NULL && (uintptr_t)aligned % 128 == 0);
            free(aligned);
            break;
        case 4:
            aligned = memalign(4096, 100);
            CHECK(aligned != NULL && (uintptr_t)aligned % 4096 == 0);
            free(aligned);
            break;
        case 5:
            zeroed = calloc(100, 5000);
            CHECK(zeroed != NULL);
            all(zeroed, 500000, 0);
            free(zeroed);
            break;
        case 6:
            block = reallocarray(block, 3, 1000);
            CHECK(block != NULL);
            all(block, LENGTH, 7);
            break;
        case 7:
            zeroed = malloc(300u << 20); /* above what a pool serves */
            CHECK(zeroed != NULL);
            free(zeroed);
            break;
        }
    }
    all(block, LENGTH, 7);
    free(block);
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    for (uintptr_t at = 0; at < THREADS; at++)
        CHECK(pthread_create(&thread[at], NULL, first, (void *)at) == 0);
    while (__atomic_load_n(&ready, __ATOMIC_SEQ_CST) < THREADS)
        sched_yield();
    __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
    for (int at = 0; at < THREADS; at++)
        pthread_join(thread[at], NULL);
    puts("first calls hold");
    return 0;
}
