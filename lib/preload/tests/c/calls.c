/* Ten calls of each operation, of 300 to 200000 bytes; overlapping memcpy among them. */
#include <stdio.h>
#include <string.h>

enum { ROOM = 300000 };
static unsigned char from[ROOM], to[ROOM];

static int differ(size_t at, size_t n, int seed) {
    for (size_t i = 0; i < n; i++) {
        if (to[at + i] != (unsigned char)((i + (size_t)seed) % 251)) {
            return 1;
        }
    }
    return 0;
}

int main(void) {
    static const size_t sizes[] = {300, 1000, 4095, 4096, 10000, 65536, 70000, 100000, 131072, 200000};
    int wrong = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        volatile size_t n = sizes[s];
        for (size_t i = 0; i < n; i++) {
            from[i] = (unsigned char)((i + s) % 251);
        }
        memcpy(to, from, n);
        wrong |= differ(0, n, (int)s) || memcmp(to, from, n) != 0;
        to[n - 1] ^= 1;
        wrong |= memcmp(to, from, n) == 0;
        to[n - 1] ^= 1;
        memmove(to + 100, to, n);
        wrong |= differ(100, n, (int)s);
        memset(to, 7, n);
        for (size_t i = 0; i < n; i++) {
            wrong |= to[i] != 7;
        }
        memset(to, 0, n);
        for (size_t i = 0; i < n; i++) {
            wrong |= to[i] != 0;
        }
    }
    puts(wrong ? "wrong bytes" : "every byte right");
    return wrong;
}
