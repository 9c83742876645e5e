/* A library whose constructor waits for threads that allocate: meanwhile the loader's lock is taken. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *use(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++) {
        size_t length = 100000 + 40000 * (size_t)round;
        char *block = round % 2 ? calloc(1, length) : malloc(length);
        void *aligned = NULL;
        if (block == NULL || posix_memalign(&aligned, 4096, length) != 0)
            abort();
        memset(block, 1, length);
        block = realloc(block, 2 * length);
        free(block);
        free(aligned);
    }
    return NULL;
}

__attribute__((constructor)) static void loaded(void)
{
    pthread_t threads[4];
    for (int at = 0; at < 4; at++)
        if (pthread_create(&threads[at], NULL, use, NULL) != 0)
            abort();
    for (int at = 0; at < 4; at++)
        pthread_join(threads[at], NULL);
}
