/* Sixty blocks of 8 MB, written, freed; then it waits until most of that is the system's again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long resident(void)
{
    long all, there = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &there) != 2)
        exit(1);
    fclose(file);
    return there * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
}

int main(void)
{
    enum { BLOCKS = 60, LENGTH = 8000000 };
    static char *blocks[BLOCKS];
    int at, waits;
    for (at = 0; at < BLOCKS; at++) {
        blocks[at] = malloc(LENGTH);
        if (blocks[at] == NULL)
            return 1;
        memset(blocks[at], 1, LENGTH);
    }
    if (resident() < 400)
        return 2;
    for (at = 0; at < BLOCKS; at++)
        free(blocks[at]);
    for (waits = 0; waits < 600 && resident() > 48; waits++)
        usleep(100000);
    if (resident() > 48) {
        fprintf(stderr, "%ld MiB stay\n", resident());
        return 3;
    }
    blocks[0] = calloc(1, LENGTH);
    for (at = 0; at < LENGTH; at++)
        if (blocks[0][at] != 0)
            return 4;
    puts("gone back");
    return 0;
}
