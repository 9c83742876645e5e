/*
 * Threads that take blocks of one pool, write them, pass them to each other and give back what others took,
 * while one zeroes, trims and asks for figures. What orders their accesses to one block is the pool alone, but
 * for the mutex of a block that is passed on. With COPIES, both libraries are used together.
 */
#include <cachewise_pool.h>
#ifdef COPIES
#include <cachewise.h>
#endif
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 3
#define ROUNDS 400
#define ORDERS 8

static cw_pool *pool;
static size_t page;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char *passed;
static unsigned passed_order, passed_byte;
static int ended;

/* Looks at each page, and writes it. */
static int zero_then(unsigned char *block, unsigned order, int byte)
{
    size_t at, size = page << order;
    for (at = 0; at < size; at += 509) {
        if (block[at] != 0) {
            return 0;
        }
        block[at] = (unsigned char)byte;
    }
    return 1;
}

static int holds(const unsigned char *block, unsigned order, int byte)
{
    size_t at, size = page << order;
    for (at = 0; at < size; at += 509) {
        if (block[at] != byte) {
            return 0;
        }
    }
    return 1;
}

static const char *exchange(unsigned char *block, unsigned order, int byte)
{
    unsigned char *other;
    unsigned other_order, other_byte;
    pthread_mutex_lock(&lock);
    other = passed;
    other_order = passed_order;
    other_byte = passed_byte;
    passed = block;
    passed_order = order;
    passed_byte = (unsigned)byte;
    pthread_mutex_unlock(&lock);
    if (other == NULL) {
        return NULL;
    }
    if (!holds(other, other_order, (int)other_byte)) {
        return "a block that was passed on has changed";
    }
    return cw_pool_free(pool, other, other_order) == CW_OK ? NULL : "a block was not taken back";
}

static const char *round_of(int number, int round)
{
    unsigned order = (unsigned)(round + number) % ORDERS;
    int byte = 1 + (round * THREADS + number) % 255;
    unsigned char *block = cw_pool_zalloc(pool, order);
    if (block == NULL) {
        return "no block";
    }
    if (!zero_then(block, order, byte)) {
        return "not zero";
    }
#ifdef COPIES
    {
        unsigned char *copy = cw_pool_alloc(pool, order);
        if (copy == NULL) {
            return "no block to copy to";
        }
        cw_copy(copy, block, page << order);
        if (!holds(copy, order, byte) || !cw_equal(copy, block, page << order)) {
            return "not what was copied";
        }
        cw_zero(copy, page << order);
        if (!holds(copy, order, 0) || cw_pool_free(pool, copy, order) != CW_OK) {
            return "not zeroed, or not taken back";
        }
    }
#endif
    if (round % 3 == 0) {
        return cw_pool_free(pool, block, order) == CW_OK ? NULL : "not taken back";
    }
    return exchange(block, order, byte);
}

static void *work(void *number)
{
    int round;
    for (round = 0; round < ROUNDS; round++) {
        const char *wrong = round_of(*(int *)number, round);
        if (wrong != NULL) {
            return (void *)wrong;
        }
    }
    return NULL;
}

static void *keep_up(void *unused)
{
    struct cw_pool_stats stats;
    size_t bytes;
    int over = 0;
    (void)unused;
    while (!over) {
        memset(&stats, 0, sizeof stats);
        stats.struct_size = sizeof stats;
        if (cw_pool_scrub(pool, 64 * page, &bytes) != CW_OK || cw_pool_trim(pool, &bytes) != CW_OK
            || cw_pool_stats(pool, &stats) != CW_OK) {
            return "zeroing, trimming or figures failed";
        }
        pthread_mutex_lock(&lock);
        over = ended;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* Is to end, and no call may be where it does: each has files to read, threads to wait for, or neither. */
static void *is_cancelled(void *done)
{
    struct cw_pool_config config;
    cw_pool *own;
    void *block;
    pthread_cancel(pthread_self());
    cw_pool_config_init(&config);
    config.capacity = config.initial = 16 << 20;
    if (cw_pool_create(&config, &own) == CW_OK) {
        block = cw_pool_zalloc(own, 2);
        cw_pool_free(own, block, 2);
        cw_pool_pause(own);
        cw_pool_resume(own);
        cw_pool_scrub(own, 1 << 20, NULL);
        cw_pool_trim(own, NULL);
        cw_pool_destroy(own);
        *(int *)done = 1;
    }
    pthread_testcancel();
    return NULL;
}

int main(void)
{
    struct cw_pool_config config;
    pthread_t threads[THREADS + 1];
    int numbers[THREADS], at, failed = 0;
    void *wrong;

    cw_pool_config_init(&config);
    config.capacity = 64 << 20;
    if (cw_pool_create(&config, &pool) != CW_OK) {
        fprintf(stderr, "no pool: %s\n", cw_pool_message());
        return 1;
    }
    page = cw_pool_page_size(pool);
    pthread_create(&threads[THREADS], NULL, keep_up, NULL);
    for (at = 0; at < THREADS; at++) {
        numbers[at] = at;
        pthread_create(&threads[at], NULL, work, &numbers[at]);
    }
    for (at = 0; at <= THREADS; at++) {
        if (at == THREADS) {
            pthread_mutex_lock(&lock);
            ended = 1;
            pthread_mutex_unlock(&lock);
        }
        pthread_join(threads[at], &wrong);
        if (wrong != NULL) {
            fprintf(stderr, "wrong: %s (%s)\n", (const char *)wrong, cw_pool_message());
            failed = 1;
        }
    }
    if (passed != NULL && cw_pool_free(pool, passed, passed_order) != CW_OK) {
        failed = 1;
    }
    cw_pool_destroy(pool);
    at = 0;
    pthread_create(&threads[0], NULL, is_cancelled, &at);
    if (pthread_join(threads[0], &wrong) != 0 || wrong != PTHREAD_CANCELED || at != 1) {
        fprintf(stderr, "cancelled in the middle of a call\n");
        failed = 1;
    }
    if (!failed) {
        puts("threads hold");
    }
    return failed;
}
