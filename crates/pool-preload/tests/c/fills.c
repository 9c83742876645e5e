/* Fills and frees 100 MiB in blocks of so many KiB, and fills 50 MiB in small ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) << 10 : 1 << 20;
    size_t count = ((size_t)100 << 20) / size, filled = 0;
    char **blocks = calloc(count, sizeof *blocks);
    if (!blocks || !count)
        return 2;
    for (size_t block = 0; block < count; block++) {
        blocks[block] = malloc(size);
        if (!blocks[block])
            return 2;
        memset(blocks[block], 1, size);
    }
    for (size_t block = 0; block < count; block++)
        free(blocks[block]);
    while (filled < (size_t)50 << 20) {
        char *small = malloc(1000);
        if (!small)
            return 2;
        memset(small, 2, 1000);
        filled += 1000;
    }
    puts("filled");
    return 0;
}
