/* The pool's contract as a C89 program sees it. */
#define _DEFAULT_SOURCE
#include <cachewise_pool.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, cw_pool_message()); \
            exit(1); \
        } \
    } while (0)

#define MIB ((size_t)1 << 20)

static struct cw_pool_config quiet(size_t capacity)
{
    struct cw_pool_config config;
    cw_pool_config_init(&config);
    config.capacity = capacity;
    config.flags = CW_POOL_NO_SCRUBBER;
    return config;
}

static void *many[4096];

static int is_zero(const unsigned char *bytes, size_t length)
{
    size_t at;
    for (at = 0; at < length; at++)
        if (bytes[at] != 0)
            return 0;
    return 1;
}

static struct cw_pool_stats figures(const cw_pool *pool)
{
    struct cw_pool_stats stats;
    stats.struct_size = sizeof stats;
    CHECK(cw_pool_get_stats(pool, &stats) == CW_OK);
    CHECK(stats.allocated + stats.cached + stats.dirty + stats.in_flight + stats.zero_resident
              + stats.zero_absent + stats.quarantined
          == stats.managed);
    return stats;
}

static void refused(struct cw_pool_config config, int code, const char *says)
{
    cw_pool *pool = (cw_pool *)&config;
    CHECK(cw_pool_create(&config, &pool) == code);
    CHECK(pool == NULL);
    if (strstr(cw_pool_message(), says) == NULL) {
        fprintf(stderr, "found \"%s\", expected \"%s\"\n", cw_pool_message(), says);
        exit(1);
    }
}

static void settings(void)
{
    struct cw_pool_config config = quiet(MIB);
    struct { struct cw_pool_config known; size_t newer; } longer;
    cw_pool *pool;
    CHECK(cw_pool_message()[0] == 0);
    config.flags = 1u << 20;
    refused(config, CW_EINVAL, "config.flags: found 0x100000");
    config.flags = CW_POOL_BASE_PAGES | CW_POOL_HUGETLB;
    refused(config, CW_EINVAL, "accepted one of them");
    config.flags = CW_POOL_ENGINE_THROUGH | CW_POOL_ENGINE_SYSTEM;
    refused(config, CW_EINVAL, "accepted one of them");
    config.flags = CW_POOL_VERIFY_ABORT;
    refused(config, CW_EINVAL, "config.verify_every: found 0");
    config = quiet(0);
    refused(config, CW_EINVAL, "capacity: found 0");
    config = quiet((size_t)1 << 41);
    refused(config, CW_EOVERMEMORY, "accepted at most");
    config = quiet(MIB);
    config.max_order = 19;
    refused(config, CW_EINVAL, "max_order: found 19, accepted 0 to 18");
    config = quiet(MIB);
    config.numa_node = -2;
    refused(config, CW_EINVAL, "config.numa_node: found -2");
    config = quiet(MIB);
    config.scrub_cpu_share = 1.5;
    refused(config, CW_EINVAL, "scrub.cpu_share: found 1.5");
    config = quiet(MIB);
    config.struct_size = offsetof(struct cw_pool_config, give_back_ms) - 1;
    refused(config, CW_EVERSION, "config.struct_size: found");
    config = quiet(MIB);
    config.flags = 1u << 24;
    refused(config, CW_EINVAL, "config.flags: found 0x1000000");
    CHECK(cw_pool_create(&config, NULL) == CW_EINVAL);
    /* A newer program, which has set nothing that this library does not know, and one that has. */
    longer.known = quiet(MIB);
    longer.known.struct_size = sizeof longer;
    longer.newer = 0;
    CHECK(cw_pool_create(&longer.known, &pool) == CW_OK);
    cw_pool_destroy(pool);
    longer.newer = 1;
    CHECK(cw_pool_create(&longer.known, &pool) == CW_EVERSION);
    cw_pool_config_init(NULL);
}

/* Every default that the header names. */
static void defaults(void)
{
    struct cw_pool_config c;
    memset(&c, 0xA5, sizeof c);
    cw_pool_config_init(&c);
    CHECK(c.struct_size == sizeof c && c.capacity == 256 * MIB && c.max_order == 18 && c.flags == 0);
    CHECK(c.initial == 0 && c.growth == 4 * MIB && c.prefault_threads == 1 && c.numa_node == -1);
    CHECK(c.cache_blocks == 256 && c.verify_every == 0 && c.scrub_start == 4 && c.scrub_stop == 0);
    CHECK(c.scrub_load > 1e300 && c.scrub_cpu_share == 0.5 && c.scrub_bytes_per_second == 0);
    CHECK(c.scrub_min_idle_ms == 50 && c.scrub_unused_limit == 1024 * MIB && c.leased == NULL);
    CHECK(c.give_back_ms == 0 && c.grow_ahead == 0);
}

/* A program of the first version has a shorter structure: what it lacks has its default. */
static void older(void)
{
    struct cw_pool_config config = quiet(4 * MIB);
    cw_pool *pool;
    config.struct_size = offsetof(struct cw_pool_config, give_back_ms);
    memset((char *)&config + config.struct_size, 0xA5, sizeof config - config.struct_size);
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    cw_pool_destroy(pool);
}

static void flags(void)
{
    static const unsigned engines[] = {0, CW_POOL_ENGINE_THROUGH, CW_POOL_ENGINE_SYSTEM, CW_POOL_ENGINE_CUDA};
    struct cw_pool_config config = quiet(8 * MIB);
    cw_pool *pool;
    size_t at;
    config.flags |= CW_POOL_PREFAULT;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    CHECK(figures(pool).zero_resident == 8 * MIB);
    cw_pool_destroy(pool);
    config = quiet((size_t)1 << 41);
    config.flags |= CW_POOL_OVER_MEMORY | CW_POOL_BASE_PAGES;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    CHECK(figures(pool).capacity == (size_t)1 << 41);
    cw_pool_destroy(pool);
    for (at = 0; at < sizeof engines / sizeof *engines; at++) {
        unsigned char *block;
        config = quiet(8 * MIB);
        config.flags = engines[at];
        config.scrub_min_idle_ms = 0;
        CHECK(cw_pool_create(&config, &pool) == CW_OK);
        block = cw_pool_alloc(pool, 9);
        CHECK(block != NULL);
        memset(block, 1, cw_pool_page_size(pool) << 9);
        CHECK(cw_pool_free(pool, block, 9) == CW_OK);
        while (figures(pool).scrubbed < cw_pool_page_size(pool) << 9)
            ;
        block = cw_pool_zalloc(pool, 9);
        CHECK(block != NULL && is_zero(block, cw_pool_page_size(pool) << 9));
        cw_pool_destroy(pool);
    }
    /* Without a server. */
    config = quiet(MIB);
    config.leased = "/nonexistent/socket";
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    CHECK(strstr(cw_pool_message(), "no lease") != NULL);
    cw_pool_destroy(pool);
}

/* Sizes in bytes: pages, and not powers of two of them. */
static void in_bytes(void)
{
    struct cw_pool_config config = quiet(128 * MIB);
    struct cw_pool_stats stats;
    cw_pool *pool, *other;
    unsigned char *block, *moved;
    size_t page, at, wanted = 3 * MIB / 2 + 1;
    CHECK(cw_pool_create(&config, &pool) == CW_OK && cw_pool_create(&config, &other) == CW_OK);
    page = cw_pool_page_size(pool);
    for (at = 0; at < 64; at++) {
        many[at] = at % 2 ? cw_pool_zalloc_bytes(pool, wanted) : cw_pool_alloc_bytes(pool, wanted);
        CHECK(many[at] != NULL && ((size_t)many[at] & (page - 1)) == 0);
        CHECK(at % 2 == 0 || is_zero(many[at], wanted));
        memset(many[at], 1, wanted);
    }
    stats = figures(pool);
    /* 64 blocks of 1.5 MiB and a page: with powers of two it would be 128 MiB. */
    CHECK(stats.allocated == 64 * (3 * MIB / 2 + page) && stats.resident <= 100 * MIB);
    CHECK(cw_pool_free_bytes(other, many[0], wanted) == CW_EFOREIGN);
    CHECK(cw_pool_free_bytes(pool, (char *)many[0] + 1, wanted) == CW_EMISALIGNED);
    for (at = 0; at < 64; at++)
        CHECK(cw_pool_free_bytes(pool, many[at], wanted) == CW_OK);
    CHECK(cw_pool_free_bytes(pool, many[0], wanted) == CW_EFREE);
    CHECK(cw_pool_free_bytes(pool, NULL, 1) == CW_OK);
    block = cw_pool_alloc_bytes(pool, 0);
    CHECK(block != NULL && figures(pool).allocated == page && cw_pool_free_bytes(pool, block, 0) == CW_OK);
    errno = 0;
    CHECK(cw_pool_alloc_bytes(pool, (size_t)-1) == NULL && errno == ENOMEM);
    CHECK(cw_pool_zalloc_bytes(pool, 129 * MIB) == NULL && errno == ENOMEM);
    block = cw_pool_resize_bytes(pool, NULL, 0, 5 * page);
    CHECK(block != NULL);
    memset(block, 0x5A, 5 * page);
    for (at = 6; at < 3000; at += at / 3) {
        moved = cw_pool_resize_bytes(pool, block, 5 * page, at * page);
        CHECK(moved != NULL && moved[0] == 0x5A && moved[5 * page - 1] == 0x5A);
        block = cw_pool_resize_bytes(pool, moved, at * page, 5 * page);
        CHECK(block == moved && block[5 * page - 1] == 0x5A);
    }
    CHECK(cw_pool_resize_bytes(pool, block, 5 * page, 129 * MIB) == NULL && block[0] == 0x5A);
    CHECK(cw_pool_free_bytes(pool, block, 5 * page) == CW_OK && figures(pool).allocated == 0);
    block = cw_pool_alloc(pool, 0);
    CHECK(cw_pool_contains(pool, block) == 1 && cw_pool_contains(pool, block + 7) == 1);
    CHECK(cw_pool_contains(other, block) == 0 && cw_pool_contains(pool, &config) == 0);
    cw_pool_destroy(pool);
    /* All blocks are unmapped, those in use too. */
    errno = 0;
    CHECK(msync(block, page, MS_ASYNC) == -1 && errno == ENOMEM);
    CHECK(cw_pool_contains(pool, block) == 0 && cw_pool_contains(NULL, block) == 0);
    cw_pool_destroy(other);
}

/* Free memory goes back by itself, and comes before it is requested. */
static void by_itself(void)
{
    struct cw_pool_config config;
    cw_pool *pool;
    unsigned char *block;
    cw_pool_config_init(&config);
    config.capacity = 128 * MIB;
    config.give_back_ms = 1;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    block = cw_pool_alloc_bytes(pool, 64 * MIB);
    CHECK(block != NULL);
    memset(block, 1, 64 * MIB);
    CHECK(cw_pool_free_bytes(pool, block, 64 * MIB) == CW_OK);
    while (figures(pool).trimmed == 0)
        ;
    cw_pool_destroy(pool);
    config.give_back_ms = 0;
    config.grow_ahead = 4 * MIB;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    CHECK(cw_pool_zalloc_bytes(pool, 64 * MIB) != NULL);
    while (figures(pool).grown_ahead < 4 * MIB)
        ;
    CHECK(figures(pool).zero_resident <= 4 * MIB);
    cw_pool_destroy(pool);
}

static void blocks(void)
{
    struct cw_pool_config config = quiet(8 * MIB);
    struct cw_pool_stats stats;
    cw_pool *pool, *other;
    unsigned order;
    size_t page, bytes;
    unsigned char *block;
    const char *message;
    char text[256];
    int count, code;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    CHECK(cw_pool_create(NULL, &other) == CW_OK);
    page = cw_pool_page_size(pool);
    CHECK(page >= 4096);
    for (order = 0; order < 9; order++) {
        size_t length = page << order;
        block = cw_pool_alloc(pool, order);
        CHECK(block != NULL);
        memset(block, 0xA5, length);
        CHECK(cw_pool_free(pool, block, order + 1) != CW_OK);
        CHECK(cw_pool_free(other, block, order) == CW_EFOREIGN);
        CHECK(cw_pool_free(pool, block + 1, order) == CW_EMISALIGNED);
        CHECK(cw_pool_free(pool, block, order) == CW_OK);
        code = cw_pool_free(pool, block, order);
        CHECK(code == CW_EFREE || code == CW_EMISALIGNED);
        CHECK(strstr(cw_pool_message(), "free of a block of order") != NULL);
        block = cw_pool_zalloc(pool, order);
        CHECK(block != NULL && is_zero(block, length));
        memset(block, 0x5A, length);
        CHECK(cw_pool_free(pool, block, order) == CW_OK);
    }
    for (count = 0; count < 4; count++) {
        unsigned char *page_to_fill = cw_pool_zalloc_to_fill(pool, 0);
        CHECK(page_to_fill != NULL && is_zero(page_to_fill, page));
        memset(page_to_fill, 0xA7, page);
        CHECK(cw_pool_free(pool, page_to_fill, 0) == CW_OK);
    }
    CHECK(cw_pool_free(pool, NULL, 0) == CW_OK);
    CHECK(cw_pool_free(pool, &config, 0) == CW_EFOREIGN);
    CHECK(cw_pool_free(pool, &config, 19) == CW_EORDER);
    errno = 0;
    CHECK(cw_pool_alloc(pool, 19) == NULL && errno == EINVAL);
    errno = 0;
    /* Until the next failure that is described the text stays, whatever succeeds; no memory is not described. */
    CHECK(cw_pool_free(pool, &config, 19) == CW_EORDER);
    message = cw_pool_message();
    strcpy(text, message);
    CHECK(cw_pool_zalloc(pool, 12) == NULL && errno == ENOMEM);
    block = cw_pool_alloc(pool, 0);
    CHECK(cw_pool_free(pool, block, 0) == CW_OK);
    CHECK(cw_pool_message() == message && strcmp(message, text) == 0 && text[0] != 0);
    errno = 0;
    for (count = 0; count < 4096; count++) {
        many[count] = cw_pool_zalloc(pool, 0);
        if (many[count] == NULL)
            break;
        CHECK(is_zero(many[count], page));
        memset(many[count], count, page);
    }
    CHECK((size_t)count == 8 * MIB / page && errno == ENOMEM);
    CHECK(figures(pool).allocated == (size_t)count * page);
    while (count-- > 0)
        CHECK(cw_pool_free(pool, many[count], 0) == CW_OK);
    CHECK(cw_pool_scrub(pool, MIB, &bytes) == CW_OK);
    CHECK(bytes > 0);
    CHECK(figures(pool).scrubbed == bytes);
    CHECK(cw_pool_scrub(pool, (size_t)-1, NULL) == CW_OK);
    stats = figures(pool);
    CHECK(stats.allocated == 0 && stats.verify_failed == 0 && stats.frees >= 8 * MIB / page);
    CHECK(cw_pool_trim(pool, &bytes) == CW_OK);
    CHECK(bytes >= 8 * MIB / 100 * 95);
    CHECK(figures(pool).zero_absent >= bytes);
    CHECK(stats.lock_holds > 0);
    /* A program of the first version has room for its own members. */
    stats.struct_size = offsetof(struct cw_pool_stats, grown_ahead);
    stats.grown_ahead = 0xA5A5;
    CHECK(cw_pool_stats(pool, &stats) == CW_OK && stats.frees > 0 && stats.grown_ahead == 0xA5A5);
    stats.struct_size -= sizeof(size_t);
    CHECK(cw_pool_stats(pool, &stats) == CW_EVERSION);
    CHECK(cw_pool_stats(pool, NULL) == CW_EINVAL);
    CHECK(cw_pool_pause(pool) == 1);
    cw_pool_resume(pool);
    cw_pool_destroy(pool);
    cw_pool_destroy(other);
    /* A destroyed pool, and none at all. */
    for (count = 0; count < 2; count++) {
        errno = 0;
        CHECK(cw_pool_alloc(pool, 0) == NULL && errno == EINVAL);
        CHECK(cw_pool_zalloc(pool, 0) == NULL);
        CHECK(cw_pool_free(pool, &config, 0) == CW_ECLOSED);
        CHECK(cw_pool_scrub(pool, 1, NULL) == CW_ECLOSED);
        CHECK(cw_pool_trim(pool, NULL) == CW_ECLOSED);
        stats.struct_size = sizeof stats;
        CHECK(cw_pool_stats(pool, &stats) == CW_ECLOSED);
        CHECK(cw_pool_page_size(pool) == 0 && cw_pool_pause(pool) == 0);
        cw_pool_resume(pool);
        cw_pool_destroy(pool);
        pool = NULL;
    }
}

static void background(void)
{
    struct cw_pool_config config;
    cw_pool *pool;
    unsigned char *block;
    size_t length;
    cw_pool_config_init(&config);
    config.capacity = config.initial = 4 * MIB;
    config.scrub_min_idle_ms = 0;
    config.scrub_load = 1e9;
    config.verify_every = 1;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    length = cw_pool_page_size(pool) << 8;
    block = cw_pool_alloc(pool, 8);
    CHECK(block != NULL);
    memset(block, 1, length);
    CHECK(cw_pool_free(pool, block, 8) == CW_OK);
    /* However long it takes: whoever runs this has a limit. */
    while (figures(pool).dirty + figures(pool).in_flight != 0)
        ;
    /* Counted behind the block's landing, without the lock. */
    while (figures(pool).scrubbed < length)
        ;
    block = cw_pool_zalloc(pool, 8);
    CHECK(block != NULL && is_zero(block, length));
    CHECK(figures(pool).verified > 0);
    cw_pool_destroy(pool);
}

/* A block becomes larger and smaller, and keeps its contents. */
static void resized(void)
{
    /* Without a scrubber: a block that it has at the moment is not free. */
    struct cw_pool_config config = quiet(256 * MIB);
    cw_pool *pool = NULL;
    unsigned char *block, *moved;
    unsigned order, round, moves = 0;
    size_t page, at;
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    page = cw_pool_page_size(pool);
    block = cw_pool_alloc(pool, 2);
    CHECK(block != NULL);
    memset(block, 0x5A, 4 * page);
    moved = cw_pool_resize(pool, block, 2, 6);
    CHECK(moved != NULL && ((size_t)moved & (64 * page - 1)) == 0);
    for (at = 0; at < 4 * page; at++)
        CHECK(moved[at] == 0x5A);
    memset(moved, 0x5B, 64 * page);
    CHECK(cw_pool_resize(pool, moved, 5, 2) == NULL);
    CHECK(cw_pool_resize(pool, moved, 6, 40) == NULL);
    CHECK(cw_pool_resize(pool, moved, 6, 1) == moved);
    for (at = 0; at < 2 * page; at++)
        CHECK(moved[at] == 0x5B);
    CHECK(cw_pool_free(pool, moved, 6) != CW_OK);
    CHECK(cw_pool_free(pool, moved, 1) == CW_OK);
    block = cw_pool_resize(pool, NULL, 0, 3);
    CHECK(block != NULL && cw_pool_free(pool, block, 3) == CW_OK);
    /* One that grows again and again by a doubling moves seldom, though caches hold blocks, and to what is there. */
    for (round = 0; round < 6; round++) {
        block = cw_pool_alloc(pool, 5);
        for (order = 5; page << order < 32 * MIB; order++) {
            CHECK(block != NULL);
            memset(block, 1, page << order);
            moved = cw_pool_resize(pool, block, order, order + 1);
            moves += moved != block;
            block = moved;
        }
        CHECK(block != NULL && cw_pool_free(pool, block, order) == CW_OK);
    }
    CHECK(moves <= 2 * round && figures(pool).resident <= 64 * MIB);
    CHECK(figures(pool).allocated == 0);
    cw_pool_destroy(pool);
}

/* Memory that a process has, what it shares divided among those who share it. */
static size_t proportional(long process)
{
    char name[64], line[256];
    unsigned long kib = 0;
    FILE *file;
    sprintf(name, "/proc/%ld/smaps_rollup", process);
    file = fopen(name, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Pss: %lu kB", &kib) == 1)
            break;
    fclose(file);
    CHECK(kib != 0);
    return (size_t)kib << 10;
}

/* Children do not touch what they inherit free, though each uses the pool and zeroes in the background. */
static void forked(void)
{
    enum { CHILDREN = 4, BLOCKS = 80 };
    cw_pool *pool;
    int ready[2], stop[2], child, status;
    long children[CHILDREN];
    unsigned order = 0;
    size_t at, before, after;
    char byte = 0;
    CHECK(cw_pool_create(NULL, &pool) == CW_OK);
    while (cw_pool_page_size(pool) << order < MIB)
        order++;
    for (at = 0; at < BLOCKS; at++) {
        CHECK((many[at] = cw_pool_alloc(pool, order)) != NULL);
        memset(many[at], 1, MIB);
    }
    while (at-- > 0)
        CHECK(cw_pool_free(pool, many[at], order) == CW_OK);
    before = proportional(getpid());
    CHECK(before >= BLOCKS / 2 * MIB && pipe(ready) == 0 && pipe(stop) == 0);
    for (child = 0; child < CHILDREN; child++) {
        children[child] = fork();
        CHECK(children[child] >= 0);
        if (children[child] == 0) {
            unsigned char *block = cw_pool_zalloc(pool, order);
            CHECK(block != NULL && is_zero(block, MIB));
            CHECK(cw_pool_free(pool, block, order) == CW_OK);
            cw_pool_resume(pool);
            close(stop[1]);
            _exit(write(ready[1], &byte, 1) != 1 || read(stop[0], &byte, 1) != 0);
        }
    }
    for (child = 0; child < CHILDREN; child++)
        CHECK(read(ready[0], &byte, 1) == 1);
    sleep(1);
    after = proportional(getpid());
    for (child = 0; child < CHILDREN; child++)
        after += proportional(children[child]);
    if (after > before + before / 10 + CHILDREN * 4 * MIB) {
        fprintf(stderr, "%lu bytes, and %lu with children\n", (unsigned long)before, (unsigned long)after);
        exit(1);
    }
    close(stop[1]);
    for (child = 0; child < CHILDREN; child++)
        CHECK(waitpid((pid_t)children[child], &status, 0) == children[child] && status == 0);
    close(ready[0]);
    close(ready[1]);
    close(stop[0]);
    cw_pool_destroy(pool);
}

int main(void)
{
    int code;
    for (code = CW_OK; code <= CW_EDAMAGED; code++)
        CHECK(strcmp(cw_strerror(code), "unknown error") != 0);
    CHECK(strcmp(cw_strerror(CW_EDAMAGED + 1), "unknown error") == 0);
    CHECK(strcmp(cw_strerror(-1), "unknown error") == 0);
    defaults();
    settings();
    older();
    flags();
    blocks();
    in_bytes();
    resized();
    forked();
    background();
    by_itself();
    puts("contract kept");
    return 0;
}
