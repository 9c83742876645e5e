/* What a test demands; the first that does not hold is named. */
#include <stdio.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
            _exit(1); \
        } \
    } while (0)
