/* busy THREADS BYTES CALLS FILL: each thread takes a block and gives it back, so many times; with FILL it writes all of
 * it, and reads that nobody else did. How many blocks met another thread in the pool is in the library's statistics. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static size_t bytes;
static long calls;
static int fill;
static atomic_int go, wrong;

static void *work(void *number)
{
    int mark = 1 + (int)(size_t)number;
    long call;
    while (!atomic_load(&go))
        ;
    for (call = 0; call < calls; call++) {
        unsigned char *block = malloc(bytes);
        if (block == NULL) {
            atomic_store(&wrong, 1);
            break;
        }
        block[0] = block[bytes - 1] = mark;
        if (fill)
            memset(block, mark, bytes);
        if (block[0] != mark || block[bytes - 1] != mark || (fill && memcmp(block, block + 1, bytes - 1) != 0))
            atomic_store(&wrong, 1);
        free(block);
    }
    return NULL;
}

int main(int count, char **words)
{
    enum { MOST = 64 };
    pthread_t threads[MOST];
    struct timespec begun, ended;
    int number, many = count == 5 ? atoi(words[1]) : 0;
    double ns;
    if (many < 1 || many > MOST)
        return 2;
    bytes = strtoul(words[2], NULL, 10);
    calls = atol(words[3]);
    fill = atoi(words[4]);
    for (number = 0; number < many; number++)
        if (pthread_create(&threads[number], NULL, work, (void *)(size_t)number) != 0)
            return 3;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    atomic_store(&go, 1);
    for (number = 0; number < many; number++)
        pthread_join(threads[number], NULL);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    ns = (ended.tv_sec - begun.tv_sec) * 1e9 + (ended.tv_nsec - begun.tv_nsec);
    printf("%.0f ns a block\n", ns / (many * (double)calls));
    return atomic_load(&wrong);
}
