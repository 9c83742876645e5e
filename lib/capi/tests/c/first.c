/* The first call, of argv[2] bytes, by the function that argv[1] names. */
#include "cachewise.h"
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    static unsigned char from[300], to[300];
    size_t n = count > 2 ? strtoul(arguments[2], 0, 10) : 0;
    const char *name = count > 1 ? arguments[1] : "";
    if (n > sizeof to)
        return 2;
    if (!strcmp(name, "copy"))
        return cw_copy(to, from, n) != to;
    if (!strcmp(name, "move"))
        return cw_move(to, from, n) != to;
    if (!strcmp(name, "fill"))
        return cw_fill(to, 5, n) != to;
    if (!strcmp(name, "zero"))
        return cw_zero(to, n) != to;
    if (!strcmp(name, "compare"))
        return cw_compare(to, from, n);
    if (!strcmp(name, "equal"))
        return !cw_equal(to, from, n);
    return 2;
}
