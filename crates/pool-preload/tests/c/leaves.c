/* The main thread leaves, and the others end by themselves; with a word, in a forked child. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void use_some(void)
{
    for (int round = 0; round < 20; round++) {
        char *block = malloc(1 << 20);
        if (block == NULL)
            abort();
        memset(block, round, 1 << 20);
        free(block);
    }
}

static void last(void) { puts("ended"), fflush(stdout); }

static void *worker(void *forks)
{
    use_some();
    if (forks != NULL) {
        pid_t child = fork();
        int status = -1;
        if (child == 0) {
            pthread_t other;
            use_some();
            pthread_create(&other, NULL, worker, NULL);
            pthread_exit(NULL);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            abort();
    }
    usleep(10000);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t other;
    (void)arguments;
    atexit(last);
    if (count < 3)
        use_some();
    pthread_create(&other, NULL, worker, count > 1 ? &other : NULL);
    pthread_exit(NULL);
}
