/* The library is opened when the program runs: nothing of it is the program's then but what is asked of it by name. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static char from[300000], to[300000];

int main(int count, char **arguments) {
    for (int file = 1; file < count; file++) {
        void *library = dlopen(arguments[file], RTLD_NOW | RTLD_LOCAL);
        if (!library) return puts(dlerror()), 1;
        void *(*copy)(void *, const void *, size_t) = dlsym(library, "memcpy");
        if (!copy || (void *)copy == dlsym(RTLD_DEFAULT, "memcpy")) return 2;
        for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i % 251 + (size_t)file);
        if (copy(to, from, sizeof to) != to || memcmp(to, from, sizeof to)) return 3;
        /* It stays: pointers to its functions may be anywhere. */
        to[0] = 1;
        if (dlclose(library) || copy(to, from, sizeof to) != to || to[0] != from[0]) return 4;
    }
    return 0;
}
