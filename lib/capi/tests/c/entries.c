/* Every byte of every operation at the sizes that entries do by themselves, in this process and in one
 * forked from it: linked, or by dlopen of argv[1], closed and opened again. Prints whose profile is
 * followed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cachewise.h"

#ifdef BY_NAME
#define CALL(name) __typeof__(&name) name##_ = (__typeof__(&name))dlsym(library, #name)
#else
#define CALL(name) __typeof__(&name) name##_ = name
#endif

enum { LONGEST = 700, ROOM = 1024 };
static unsigned char a[ROOM], b[ROOM], expected[ROOM];

/* Bytes that no two places near each other share. */
static void reset(void) {
    for (int i = 0; i < ROOM; i++) {
        a[i] = (unsigned char)(i * 7 + 1);
        b[i] = (unsigned char)(i * 13 + 5);
        expected[i] = a[i];
    }
}

static int right(void *library) {
    (void)library;
    CALL(cw_copy);
    CALL(cw_move);
    CALL(cw_fill);
    CALL(cw_zero);
    CALL(cw_compare);
    CALL(cw_equal);
    int wrong = 0;
    for (int n = 0; n <= LONGEST; n++) {
        int to = n % 67, from = n % 31;
        reset();
        for (int i = 0; i < n; i++) expected[to + i] = b[from + i];
        wrong |= cw_copy_(a + to, b + from, n) != a + to || memcmp(a, expected, ROOM) != 0;
        wrong |= cw_compare_(a + to, b + from, n) != 0 || cw_equal_(a + to, b + from, n) != 1;
        if (n > 0) {
            int at = n * 5 % n;
            a[to + at] ^= 0x80;
            int order = a[to + at] > b[from + at] ? 1 : -1, found = cw_compare_(a + to, b + from, n);
            wrong |= (found > 0) - (found < 0) != order || cw_equal_(a + to, b + from, n) != 0;
        }
        reset();
        for (int i = 0; i < n; i++) expected[from + 40 + i] = a[from + i];
        wrong |= cw_move_(a + from + 40, a + from, n) == NULL || memcmp(a, expected, ROOM) != 0;
        reset();
        for (int i = 0; i < n; i++) expected[to + i] = 0xA5;
        wrong |= cw_fill_(a + to, 0x1A5, n) != a + to || memcmp(a, expected, ROOM) != 0;
        reset();
        for (int i = 0; i < n; i++) expected[to + i] = 0;
        wrong |= cw_zero_(a + to, n) != a + to || memcmp(a, expected, ROOM) != 0;
        if (wrong) {
            fprintf(stderr, "%d bytes at %d from %d\n", n, to, from);
            return 0;
        }
    }
    return 1;
}

static void *open_library(const char *path) {
#ifdef BY_NAME
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fprintf(stderr, "%s\n", dlerror());
    return library;
#else
    (void)path;
    return NULL;
#endif
}

int main(int count, char **arguments) {
    const char *path = count > 1 ? arguments[1] : "";
    void *library = open_library(path);
    pid_t child = fork();
    if (child == 0) _exit(right(library) ? 0 : 1);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0 || !right(library)) return 1;
#ifdef BY_NAME
    if (dlclose(library) != 0) return 1;
    library = open_library(path);
    if (!right(library)) return 1;
#endif
    child = fork();
    if (child == 0) _exit(right(library) ? 0 : 1);
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
    char source[512];
    CALL(cw_profile_source);
    cw_profile_source_(source, sizeof source);
    puts(source);
    return 0;
}
