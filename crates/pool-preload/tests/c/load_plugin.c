/* Loads a library, as argument, whose constructor waits for threads that allocate. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    void *library;
    alarm(60);
    if (count > 2)
        free(calloc(1, 1 << 20)); /* the pool is in use before */
    library = dlopen(arguments[1], RTLD_NOW);
    puts(library != NULL ? "loaded" : dlerror());
    return library == NULL || dlclose(library) != 0;
}
