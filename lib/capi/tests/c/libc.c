/* Prints the decision for 3000 bytes, and checks that the bytes are right: linked, or by dlopen of argv[1]. */
#define _GNU_SOURCE
#include "cachewise.h"
#ifdef BY_NAME
#include <dlfcn.h>
#endif
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    static unsigned char from[300000], to[300000];
    const char *(*decision)(enum cw_operation, enum cw_reuse, size_t) = 0;
    void *(*copy)(void *, const void *, size_t) = 0;
    void *(*zero)(void *, size_t) = 0;
    int (*equal)(const void *, const void *, size_t) = 0;
#ifdef BY_NAME
    void *library = dlopen(count > 1 ? arguments[1] : "", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    *(void **)&decision = dlsym(library, "cw_decision");
    *(void **)&copy = dlsym(library, "cw_copy");
    *(void **)&zero = dlsym(library, "cw_zero");
    *(void **)&equal = dlsym(library, "cw_equal");
#else
    (void)count, (void)arguments;
    decision = cw_decision, copy = cw_copy, zero = cw_zero, equal = cw_equal;
#endif
    for (size_t n = 1; n <= sizeof to; n += n / 3 + 1) {
        memset(from, (int)(n % 250) + 1, n);
        if (copy(to, from, n) != to || !equal(to, from, n) || memcmp(to, from, n) != 0) {
            puts("wrong bytes");
            return 1;
        }
        to[n - 1] ^= 1;
        if (equal(to, from, n)) {
            puts("unequal bytes");
            return 1;
        }
        if (zero(to, n) != to || to[0] != 0 || to[n - 1] != 0) {
            puts("not zero");
            return 1;
        }
    }
    printf("%s %s %s\n", decision(CW_COPY, CW_REUSE_UNKNOWN, 3000),
           decision(CW_ZERO, CW_REUSE_NEVER, 3000), decision(CW_EQUAL, CW_REUSE_UNKNOWN, 3000));
    return 0;
}
