/* What few programs do, by a word. Each prints "well", with a pool, without one, and without the library. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { LARGE = 1 << 20 };

/* glibc's other names for what gives back, of which the second is for programs linked before 2.26. */
void __libc_free(void *);
void cfree(void *);
void *__libc_malloc(size_t), *__libc_realloc(void *, size_t);
__asm__(".symver cfree, cfree@GLIBC_2.2.5");

static void names(void)
{
    for (size_t size = 24; size <= LARGE; size *= 3) {
        unsigned char *block = malloc(size), *of_libc = __libc_malloc(size);
        __libc_free(calloc(1, size));
        cfree(memalign(4096, size));
        memset(block, 0x5A, size);
        block = __libc_realloc(block, 3 * size);
        CHECK(block != NULL && block[0] == 0x5A && block[size - 1] == 0x5A);
        of_libc = __libc_realloc(of_libc, 2 * size);
        CHECK(of_libc != NULL);
        __libc_free(of_libc);
        free(block);
        free(__libc_realloc(NULL, size));
    }
    __libc_free(NULL);
    cfree(NULL);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Is cancelled before the first large request; none of these functions may be where that takes effect. */
static void *is_cancelled(void *unused)
{
    char *block, *other;
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_cancel(pthread_self());
    block = malloc(LARGE);
    other = calloc(1, LARGE);
    block = realloc(block, 3 * LARGE);
    free(other);
    free(block);
    pthread_mutex_unlock(&lock);
    pthread_testcancel();
    return NULL;
}

static void cancelled(void)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, is_cancelled, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(pthread_mutex_trylock(&lock) == 0);
    free(malloc(LARGE));
}

/* A daemon has closed stderr and has its data there; no pool can be made. */
static void data(void)
{
    struct rlimit little = {100 << 20, 100 << 20};
    char name[] = "dataXXXXXX", *block;
    int kept = dup(2), file = mkstemp(name);
    CHECK(kept > 2 && file > 2 && unlink(name) == 0 && dup2(file, 2) == 2);
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    block = malloc(LARGE);
    CHECK(block != NULL);
    free(block);
    CHECK(lseek(file, 0, SEEK_END) == 0);
    CHECK(dup2(kept, 2) == 2);
}

static volatile int begun;

static void *first_call(void *unused)
{
    (void)unused;
    begun = 1;
    free(malloc(LARGE));
    return NULL;
}

/* Children that are forked while another thread makes the pool have one: its blocks are whole pages. */
static void during(int with_pool)
{
    int without = 0;
    for (int round = 0; round < 200; round++) {
        pid_t one = fork(), two;
        int status = -1;
        if (one == 0) {
            /* In this process there is none yet. */
            pthread_t thread;
            pthread_create(&thread, NULL, first_call, NULL);
            while (!begun)
                ;
            for (volatile int wait = 0; wait < round * 200; wait++)
                ;
            two = fork();
            if (two == 0) {
                free(malloc(LARGE));
                _exit(malloc_usable_size(malloc(LARGE)) % 4096 != 0);
            }
            waitpid(two, &status, 0);
            pthread_join(thread, NULL);
            _exit(WEXITSTATUS(status));
        }
        CHECK(waitpid(one, &status, 0) == one && WIFEXITED(status));
        without += status != 0;
    }
    CHECK(without == (with_pool ? 0 : 200));
}

/* Leaves the directory that it was started in, and its environment. */
static void elsewhere(void)
{
    free(malloc(LARGE));
    CHECK(chdir("/") == 0);
    CHECK(clearenv() == 0);
}

static int threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;)
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* The child has this process's memory, and its threads end with it. With a word, one of the pool is to be here. */
static void child(int with_pool)
{
    pid_t one = vfork();
    int status = -1;
    if (one == 0) {
        free(malloc(LARGE));
        _exit(0);
    }
    CHECK(waitpid(one, &status, 0) == one && status == 0);
    free(malloc(LARGE));
    CHECK(threads() == 1 + with_pool);
}

int main(int count, char **words)
{
    const char *word = count > 1 ? words[1] : "";
    CHECK(errno == 0);
    if (strcmp(word, "names") == 0)
        names();
    else if (strcmp(word, "cancelled") == 0)
        cancelled();
    else if (strcmp(word, "data") == 0)
        data();
    else if (strcmp(word, "during") == 0)
        during(count > 2);
    else if (strcmp(word, "elsewhere") == 0)
        elsewhere();
    else
        child(strcmp(word, "pool") == 0);
    puts("well");
    return 0;
}
