/* A function that is chosen when it is referred to, by a resolver that copies, fills and compares. */
#include <string.h>

enum { LARGE = 400000 };
static char from[LARGE], to[LARGE];
static int answer(void) { return 42; }

static int (*resolve(void))(void) {
    for (size_t n = 1; n < LARGE - 1; n = n * 3 / 2 + 1) {
        memset(from, 7, n);
        memset(to, 0, n + 1);
        memcpy(to, from, n);
        if (memcmp(from, to, n) || to[n]) return 0;
        from[n - 1] = 8;
        if (memcmp(from, to, n) <= 0 || bcmp(to, from, n) == 0) return 0;
        from[n / 2] = 9;
        memmove(to + 1, from, n);
        memmove(to, to + 1, n);
        memmove(from + 1, from, n);
        if (memcmp(from + 1, to, n)) return 0;
    }
    return answer;
}

int chosen(void) __attribute__((ifunc("resolve")));
