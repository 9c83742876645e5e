/* A library with memcpy and its relatives, loaded behind the one under test: counts its calls, and
 * says at exit how many of each kind came. */
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned long copies, moves, fills, compares;

void *memmove(void *dst, const void *src, size_t n) {
    unsigned char *to = dst;
    const unsigned char *from = src;
    moves++;
    if (to <= from) {
        for (size_t i = 0; i < n; i++) {
            to[i] = from[i];
        }
    } else {
        for (size_t i = n; i > 0; i--) {
            to[i - 1] = from[i - 1];
        }
    }
    return dst;
}

void *memcpy(void *dst, const void *src, size_t n) {
    unsigned char *to = dst;
    const unsigned char *from = src;
    copies++;
    for (size_t i = 0; i < n; i++) {
        to[i] = from[i];
    }
    return dst;
}

void *memset(void *dst, int byte, size_t n) {
    unsigned char *to = dst;
    fills++;
    for (size_t i = 0; i < n; i++) {
        to[i] = (unsigned char)byte;
    }
    return dst;
}

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *left = a, *right = b;
    compares++;
    for (size_t i = 0; i < n; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return 0;
}

__attribute__((destructor)) static void tell(void) {
    char text[200];
    int length = snprintf(text, sizeof text, "next: %lu copies, %lu moves, %lu fills, %lu compares\n",
                          copies, moves, fills, compares);
    (void)!write(2, text, (size_t)length);
}
