# A C program that makes and drops large zeroed tables and fills part of them, as hash joins do.
set -eu
case $1 in
prepare)
    command -v cc >/dev/null || { echo "no C compiler"; exit 77; }
    cat >tables.c <<'C'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    uint64_t random = 1, sum = 0;
    for (int round = 0; round < 400; round++) {
        size_t slots = (size_t)1 << (16 + round % 6);
        uint64_t *table = calloc(slots, sizeof *table);
        if (table == NULL)
            return 1;
        for (size_t row = 0; row < slots / 16; row++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t at = (random >> 20) & (slots - 1);
            while (table[at] != 0 && table[at] != random)
                at = (at + 1) & (slots - 1);
            table[at] = random | 1;
            sum += at;
        }
        free(table);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
C
    cc -O2 -o tables tables.c
    ;;
run) "$PREPARED/tables" ;;
esac
