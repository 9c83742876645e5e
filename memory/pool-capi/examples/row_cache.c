/*
 * A cache of table rows that wants its pages zeroed and there: what a storage engine does with a
 * pool. Every row is a page of which only the first line is written. Between rounds, where an engine
 * is idle, pages that came back are zeroed ahead.
 *
 *     cc row_cache.c -lcachewise_pool
 */
#include <cachewise_pool.h>
#include <stdio.h>

#define ROWS 512
#define ROUNDS 20

struct row {
    unsigned long key;
    unsigned char used;
};

int main(void)
{
    struct cw_pool_config config;
    struct cw_pool_stats stats;
    cw_pool *pool;
    struct row *rows[ROWS];
    unsigned long wrong = 0;
    int at, round, code;

    cw_pool_config_init(&config);
    config.capacity = 16 << 20;
    config.initial = 4 << 20; /* resident and zero from the start */
    code = cw_pool_create(&config, &pool);
    if (code != CW_OK) {
        fprintf(stderr, "no pool: %s (%s)\n", cw_strerror(code), cw_pool_message());
        return 1;
    }
    for (round = 0; round < ROUNDS; round++) {
        for (at = 0; at < ROWS; at++) {
            rows[at] = cw_pool_zalloc(pool, 0);
            if (rows[at] == NULL) {
                fprintf(stderr, "no page\n");
                return 1;
            }
            /* Zero is promised: no row needs its fields cleared. */
            wrong += rows[at]->key != 0 || rows[at]->used != 0;
            rows[at]->key = (unsigned long)at;
            rows[at]->used = 1;
        }
        for (at = 0; at < ROWS; at++)
            cw_pool_free(pool, rows[at], 0);
        cw_pool_scrub(pool, config.initial, NULL);
    }
    stats.struct_size = sizeof stats;
    cw_pool_stats(pool, &stats);
    printf("%d rows taken, %lu found ready\n", ROUNDS * ROWS, (unsigned long)stats.zero_hits);
    cw_pool_destroy(pool);
    puts(wrong == 0 ? "rows were zero" : "rows were NOT zero");
    return wrong != 0;
}
