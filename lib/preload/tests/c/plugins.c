/* Two plugins, one after the other in the same place; with an argument the first stays. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef void copies(char *, const char *, size_t, int);

static void *use(const char *file, int times, int stays) {
    size_t n = 16 << 20;
    static char *from, *to;
    if (!from) from = calloc(1, n), to = malloc(n);
    void *plugin = dlopen(file, RTLD_NOW);
    if (!plugin) abort();
    copies *function = (copies *)dlsym(plugin, "copies");
    function(to, from, n, times);
    if (!stays && dlclose(plugin)) abort();
    return (void *)function;
}

int main(int count, char **arguments) {
    (void)arguments;
    void *one = use("./one.so", 30, count > 1), *two = use("./two.so", 50, 1);
    puts(one == two ? "the same place" : "elsewhere");
    return 0;
}
