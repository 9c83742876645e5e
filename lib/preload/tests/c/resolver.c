/* A function that is chosen when it is referred to, by a resolver that copies, fills and compares; with REFERS the library
   that refers to it, with ASKS the program, which then copies between buffers that overlap. */
#include <stdio.h>
#include <string.h>

#if defined REFERS
int chosen(void);
int call(void) { return chosen(); }
#elif defined ASKS
int call(void);

int main(void) {
    for (size_t n = 1; n < 300; n++)
        for (size_t to = 0; to < 80; to++) {
            unsigned char bytes[400];
            for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i * 7 % 251;
            memcpy(bytes + to, bytes + 40, n);
            for (size_t i = 0; i < n; i++)
                if (bytes[to + i] != (40 + i) * 7 % 251) return 1;
        }
    printf("%d\n", call());
}
#else

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
#endif
