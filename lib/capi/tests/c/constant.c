/* Constant sizes; also compiled as C++. With CALLS, sizes that are not, and addresses of functions. */
#include "cachewise.h"

struct record {
    char bytes[64];
};

int constant(struct record *to, const struct record *from, const void *key, const void *other);

int constant(struct record *to, const struct record *from, const void *key, const void *other) {
    cw_copy(to, from, 24);
    cw_copy(to->bytes + 24, from->bytes + 24, 8);
    cw_fill(to->bytes + 32, 0x1A5, 16);
    cw_zero(to->bytes + 48, 16);
    if (cw_copy(0, 0, 0) || cw_fill(0, 1, 0) || cw_zero(0, 0))
        return 2;
    return cw_equal(key, other, 8) && cw_equal(key, other, 4) && cw_equal(key, other, 2) &&
           cw_equal(key, other, 1);
}

#ifdef CALLS
#include <stdio.h>

static int all(size_t n, void *(*copy)(void *, const void *, size_t)) {
    static char from[200], to[200];
    size_t at;
    cw_fill(from, 3, sizeof from);
    cw_zero(to, sizeof to);
    if (copy(to, from, n) != to || cw_copy(to + 100, from, n) != to + 100)
        return 0;
    for (at = 0; at < 100; at++)
        if (to[at] != (at < n ? 3 : 0) || to[at + 100] != (at < n ? 3 : 0))
            return 0;
    return cw_equal(to, from, n) && cw_zero(to, n++) == to && to[0] == 0 && n > 1;
}

int main(void) {
    struct record to, from;
    size_t at;
    for (at = 0; at < sizeof from; at++)
        to.bytes[at] = 99, from.bytes[at] = (char)(at + 1);
    if (!constant(&to, &from, "12345678", "12345678") || constant(&to, &from, "12345678", "12345679"))
        return 1;
    for (at = 0; at < sizeof to; at++)
        if (to.bytes[at] != (char)(at < 32 ? at + 1 : at < 48 ? 0xA5 : 0))
            return 2;
    if (!all(70, cw_copy) || !all(3, &cw_copy))
        return 3;
    puts("right");
    return 0;
}
#endif
