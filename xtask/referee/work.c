/* A program that is told how much work to do: ./work PARTS [MIB], in thousands of a part of some 100 us. It copies, mixes
   and allocates as programs do, prints the same whatever it was told, and holds MIB more at its peak. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    long parts = argc > 1 ? atol(argv[1]) : 1000;
    size_t more = argc > 2 ? (size_t)atol(argv[2]) << 20 : 0;
    if (more) {
        char *block = malloc(more);
        memset(block, 1, more);
        __asm__ volatile("" ::"r"(block) : "memory");
        free(block);
    }
    uint64_t mix = 88172645463325252ull;
    for (long part = 0; part < parts; part++) {
        char *from = malloc(65536), *to = malloc(65536);
        memset(from, (int)part, 65536);
        for (int at = 0; at < 4000; at++) {
            mix ^= mix << 13, mix ^= mix >> 7, mix ^= mix << 17;
            memcpy(to + mix % 60000, from + (mix >> 32) % 60000, 64 + mix % 512);
        }
        mix += (unsigned char)to[mix % 65536];
        free(from), free(to);
    }
    __asm__ volatile("" ::"r"(mix));
    puts("done");
    return 0;
}
