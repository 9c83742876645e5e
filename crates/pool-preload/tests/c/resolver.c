/* A function that is chosen when it is referred to, by a resolver that calls every function that allocates.
 * Nothing is printed here: the C library may not be ready for that. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

enum { BLOCKS = 8, LENGTH = 700 };
unsigned char *kept[BLOCKS];
int kept_lengths[BLOCKS];

static int chosen_well(void) { return 42; }
static int chosen_badly(void) { return 1; }

static void write_all(volatile unsigned char *bytes, int length, int value)
{
    for (int at = 0; at < length; at++)
        bytes[at] = (unsigned char)value;
}

static int all(const volatile unsigned char *bytes, int length, int value)
{
    for (int at = 0; at < length; at++)
        if (bytes[at] != value)
            return 0;
    return 1;
}

static int keep(int at, void *block, size_t align, int length)
{
    if (block == NULL || (uintptr_t)block % align != 0 || malloc_usable_size(block) < (size_t)length)
        return 0;
    write_all(block, length, at + 1);
    kept[at] = block;
    kept_lengths[at] = length;
    return 1;
}

static int (*choose(void))(void)
{
    void *aligned = NULL;
    unsigned char *zeroed = calloc(7, 100), *grown = malloc(LENGTH);
    if (zeroed == NULL || !all(zeroed, LENGTH, 0) || grown == NULL)
        return chosen_badly;
    write_all(grown, LENGTH, 9);
    grown = realloc(grown, 3 * LENGTH);
    if (grown == NULL || !all(grown, LENGTH, 9))
        return chosen_badly;
    grown = reallocarray(grown, 4, LENGTH);
    if (grown == NULL || !all(grown, LENGTH, 9) || reallocarray(grown, SIZE_MAX, 2) != NULL)
        return chosen_badly;
    free(malloc(10));
    free(NULL);
    /* More than there is at that time: refused, or served by whoever comes next. */
    free(malloc(SIZE_MAX / 2));
    if (posix_memalign(&aligned, 256, LENGTH) != 0 || malloc_usable_size(NULL) != 0)
        return chosen_badly;
    return keep(0, zeroed, 16, LENGTH) && keep(1, grown, 16, 4 * LENGTH) && keep(2, aligned, 256, LENGTH)
                   && keep(3, aligned_alloc(64, 704), 64, 704) && keep(4, memalign(128, LENGTH), 128, LENGTH)
                   && keep(5, valloc(LENGTH), 4096, LENGTH) && keep(6, pvalloc(LENGTH), 4096, 4096)
                   && keep(7, malloc(LENGTH), 16, LENGTH)
               ? chosen_well
               : chosen_badly;
}

int chosen(void) __attribute__((ifunc("choose")));
