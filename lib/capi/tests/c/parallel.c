/*
 * Copies and zeroing by several threads: every byte right, whoever does the work.
 */
#include <cachewise.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (((size_t)40 << 20) + 13)

static int failures;

static void expect(int holds, const char *what)
{
    if (!holds) {
        failures++;
        fprintf(stderr, "wrong: %s\n", what);
    }
}

struct task {
    void (*job)(void *);
    void *argument;
};

static void *start(void *task)
{
    struct task *given = (struct task *)task;
    given->job(given->argument);
    return NULL;
}

/* A pool that makes its threads anew, and notes how many it was asked for. */
static void run(void *pool, size_t threads, void (*job)(void *), void *argument)
{
    pthread_t thread[8];
    struct task task;
    size_t i, made = 0;

    task.job = job;
    task.argument = argument;
    *(size_t *)pool = threads;
    for (i = 1; i < threads && i < 8; i++) {
        made += pthread_create(&thread[made], NULL, start, &task) == 0;
    }
    job(argument);
    for (i = 0; i < made; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* One that never gets round to it. */
static void idle(void *pool, size_t threads, void (*job)(void *), void *argument)
{
    (void)pool;
    (void)threads;
    (void)job;
    (void)argument;
}

static int all_zero(const unsigned char *bytes, size_t n)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return 0;
        }
    }
    return 1;
}

struct copy {
    unsigned char *dst, *src;
    struct cw_workers *workers;
    int done;
};

/* Is to end, and may not before its call has: other threads use what is on its stack. */
static void *is_cancelled(void *given)
{
    struct copy *copy = (struct copy *)given;
    pthread_cancel(pthread_self());
    cw_copy_workers(copy->dst, copy->src, SIZE, CW_REUSE_UNKNOWN, copy->workers);
    cw_zero_parallel(copy->src, SIZE, CW_REUSE_UNKNOWN, 2);
    copy->done = 1;
    pthread_testcancel();
    return NULL;
}

int main(void)
{
    unsigned char *src = (unsigned char *)malloc(SIZE);
    unsigned char *dst = (unsigned char *)malloc(SIZE + 2);
    struct cw_workers workers;
    struct copy copy;
    pthread_t thread;
    void *ended;
    size_t asked = 0, i, threads;

    if (src == NULL || dst == NULL) {
        return 1;
    }
    for (i = 0; i < SIZE; i++) {
        src[i] = (unsigned char)(i * 31 + 7);
    }
    for (threads = 0; threads < 4; threads++) {
        memset(dst, 0xA5, SIZE + 2);
        expect(cw_copy_parallel(dst + 1, src, SIZE, CW_REUSE_UNKNOWN, threads) == dst + 1, "dst");
        expect(memcmp(dst + 1, src, SIZE) == 0, "copied");
        expect(dst[0] == 0xA5 && dst[SIZE + 1] == 0xA5, "around a copy");
        expect(cw_zero_parallel(dst + 1, SIZE, CW_REUSE_NEVER, threads) == dst + 1, "dst");
        expect(all_zero(dst + 1, SIZE), "zeroed");
        expect(dst[0] == 0xA5 && dst[SIZE + 1] == 0xA5, "around zeroes");
    }

    workers.size = sizeof workers;
    workers.threads = 2;
    workers.pool = &asked;
    workers.run = run;
    cw_copy_workers(dst, src, SIZE, CW_REUSE_SOON, &workers);
    expect(memcmp(dst, src, SIZE) == 0, "copied by a pool");
    expect(asked == 2, "both threads of the pool are used without a profile");
    asked = 0;
    cw_copy_workers(dst, src, 1000, CW_REUSE_SOON, &workers);
    expect(asked == 0, "a small copy leaves the pool alone");
    cw_zero_workers(dst, SIZE, CW_REUSE_UNKNOWN, &workers);
    expect(all_zero(dst, SIZE), "zeroed by a pool");
    copy.dst = dst, copy.src = src, copy.workers = &workers, copy.done = 0;
    expect(pthread_create(&thread, NULL, is_cancelled, &copy) == 0, "a thread");
    expect(pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED, "it was cancelled");
    expect(copy.done == 1, "but not in the middle of a copy");
    expect(all_zero(src, SIZE), "nor of zeroing");
    for (i = 0; i < SIZE; i++) {
        src[i] = (unsigned char)(i * 31 + 7);
    }
    expect(memcmp(dst, src, SIZE) == 0, "copied by who was cancelled");
    workers.run = idle;
    cw_copy_workers(dst, src, SIZE, CW_REUSE_UNKNOWN, &workers);
    expect(memcmp(dst, src, SIZE) == 0, "copied in spite of the pool");
    workers.run = NULL;
    cw_zero_workers(dst, SIZE, CW_REUSE_UNKNOWN, &workers);
    expect(all_zero(dst, SIZE), "zeroed without a function");
    workers.size = 0;
    cw_copy_workers(dst, src, SIZE, CW_REUSE_UNKNOWN, &workers);
    expect(memcmp(dst, src, SIZE) == 0, "copied without a pool");
    cw_zero_workers(dst, SIZE, CW_REUSE_UNKNOWN, NULL);
    expect(all_zero(dst, SIZE), "zeroed without a pool");
    cw_copy_parallel(NULL, NULL, 0, CW_REUSE_UNKNOWN, 2);

    free(src);
    free(dst);
    if (failures == 0) {
        printf("all bytes right\n");
    }
    return failures != 0;
}
