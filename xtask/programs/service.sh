# A service with many threads: requests of changing sizes, a cache that lives on, then no load. Resident memory stays.
set -eu
case $1 in
prepare)
    command -v cc >/dev/null || { echo "no C compiler"; exit 77; }
    cat >service.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { THREADS = 12, CACHED = 300 };
static int requests;
static unsigned long served[THREADS];
static pthread_barrier_t idle;
static void *serve(void *argument)
{
    long self = (long)argument;
    unsigned random = 7919u * (unsigned)self + 1;
    char *cache[CACHED] = {0};
    for (int i = 0; i < requests; i++) {
        unsigned at = rand_r(&random) % CACHED;
        size_t size = rand_r(&random) % 100 < 96 ? 64 + rand_r(&random) % 8000 : 20000 + rand_r(&random) % 250000;
        free(cache[at]);
        cache[at] = malloc(size);
        memset(cache[at], 1 + i % 100, size);
        served[self] += size + (unsigned char)cache[at][size / 2];
    }
    /* The load is over: one entry in twenty lives on. */
    for (int at = 0; at < CACHED; at++)
        if (at % 20)
            free(cache[at]);
    pthread_barrier_wait(&idle);
    usleep(500000);
    return NULL;
}
int main(int count, char **words)
{
    pthread_t threads[THREADS];
    unsigned long sum = 0;
    requests = count > 1 ? atoi(words[1]) : 1000;
    pthread_barrier_init(&idle, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, serve, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += served[i];
    }
    printf("%lu\n", sum);
    return 0;
}
C
    cc -O2 -pthread -o service service.c
    ;;
run) . "$COMMON"; "$PREPARED/service" "$(part 16000)" ;;
esac
