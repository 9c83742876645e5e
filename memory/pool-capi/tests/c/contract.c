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

/* A setting that is refused is named, and described. */
static void refused(struct cw_pool_config config, int code, const char *named)
{
    cw_pool *pool = (cw_pool *)&config;
    CHECK(cw_pool_create(&config, &pool) == code);
    CHECK(pool == NULL && strstr(cw_pool_message(), named) != NULL);
}

static void settings(void)
{
    struct cw_pool_config config = quiet(MIB);
    struct { struct cw_pool_config known; size_t newer; } longer;
    static const unsigned flags[] = {
        1u << 20, 1u << 31, CW_POOL_BASE_PAGES | CW_POOL_HUGETLB, CW_POOL_ENGINE_THROUGH | CW_POOL_ENGINE_SYSTEM,
        CW_POOL_ENGINE_CUDA | CW_POOL_ENGINE_SYSTEM};
    cw_pool *pool;
    size_t at;
    CHECK(cw_pool_message()[0] == 0);
    for (at = 0; at < sizeof flags / sizeof *flags; at++) {
        config.flags = flags[at];
        refused(config, CW_EINVAL, "config.flags");
    }
    config.flags = CW_POOL_VERIFY_ABORT;
    refused(config, CW_EINVAL, "config.verify_every");
    refused(quiet(0), CW_EINVAL, "capacity");
    refused(quiet((size_t)1 << 41), CW_EOVERMEMORY, "capacity");
    config = quiet(MIB);
    config.max_order = 19;
    refused(config, CW_EINVAL, "max_order");
    config = quiet(MIB);
    config.initial = 2 * MIB;
    refused(config, CW_EINVAL, "initial");
    config = quiet(MIB);
    config.scrub_cpu_share = 1.5;
    refused(config, CW_EINVAL, "scrub.cpu_share");
    config = quiet(MIB);
    config.struct_size--;
    refused(config, CW_EVERSION, "config.struct_size");
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
    CHECK(c.initial == 0 && c.verify_every == 0);
    CHECK(c.scrub_start == 4 && c.scrub_stop == 0 && c.scrub_load > 1e300 && c.scrub_cpu_share == 0.5);
    CHECK(c.scrub_min_idle_ms == 50 && c.leased == NULL && c.give_back_ms == 0);
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
    CHECK(strstr(cw_pool_message(), "/nonexistent/socket") != NULL);
    cw_pool_destroy(pool);
    /* Without huge pages that are reserved, or with them. */
    config = quiet(4 * MIB);
    config.flags |= CW_POOL_HUGETLB;
    CHECK(cw_pool_create(&config, &pool) == CW_OK && cw_pool_zalloc(pool, 0) != NULL);
    cw_pool_destroy(pool);
}

/* Sizes in bytes: pages, and not powers of two of them. */
static void in_bytes(void)
{
    struct cw_pool_config config = quiet(128 * MIB);
    struct cw_pool_stats stats;
    cw_pool *pool, *other;
    unsigned char *block;
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
    /* The rest of a block's power of two is free for others: a page each. */
    CHECK(stats.allocated == 64 * (3 * MIB / 2 + page) && stats.managed == 128 * MIB);
    block = cw_pool_alloc_bytes(pool, 3 * MIB / 8);
    CHECK(block != NULL && figures(pool).allocated == stats.allocated + 3 * MIB / 8);
    CHECK(cw_pool_free_bytes(pool, block, 3 * MIB / 8) == CW_OK);
    CHECK(cw_pool_free_bytes(other, many[0], wanted) == CW_EFOREIGN);
    CHECK(cw_pool_free_bytes(pool, (char *)many[0] + 1, wanted) == CW_EMISALIGNED);
    for (at = 0; at < 64; at++)
        CHECK(cw_pool_free_bytes(pool, many[at], wanted) == CW_OK);
    CHECK(cw_pool_free_bytes(pool, many[0], wanted) == CW_EFREE);
    CHECK(cw_pool_free_bytes(pool, NULL, 1) == CW_OK);
    block = cw_pool_alloc_bytes(pool, 0);
    CHECK(block != NULL && figures(pool).allocated == page && cw_pool_free_bytes(pool, block, 0) == CW_OK);
    cw_pool_destroy(pool);
    CHECK(cw_pool_create(&config, &pool) == CW_OK);
    /* All of the pool, where nothing else is in use, and not more: that is no want of memory, and is described. */
    block = cw_pool_zalloc_bytes(pool, 128 * MIB);
    CHECK(block != NULL && is_zero(block, 128 * MIB));
    CHECK(cw_pool_free_bytes(pool, block, 128 * MIB) == CW_OK && figures(pool).allocated == 0);
    for (at = 0; at < 3; at++) {
        static const size_t beyond[] = {(size_t)-1, (size_t)1 << 63, 128 * MIB + 1};
        cw_pool_free(pool, &config, 19);
        errno = 0;
        CHECK(cw_pool_zalloc_bytes(pool, beyond[at]) == NULL && errno == EINVAL);
        CHECK(strstr(cw_pool_message(), "134217728") != NULL);
        CHECK(cw_pool_free_bytes(pool, many[0], beyond[at]) == CW_EINVAL);
    }
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

/* Free memory goes back by itself. */
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
    block = cw_pool_alloc(pool, 0);
    errno = 0;
    CHECK(cw_pool_zalloc(pool, 11) == NULL && errno == ENOMEM);
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
    /* A newer program has room for what this library does not know. */
    stats.struct_size = sizeof stats - sizeof(size_t);
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

/* A child is refused, whatever it asks, keeps its copy of what is in use, and makes a pool of its own. */
static void forked(void)
{
    struct cw_pool_config config = quiet(8 * MIB);
    cw_pool *pool, *own;
    unsigned char *block;
    struct cw_pool_stats stats;
    int status;
    pid_t child;
    CHECK(cw_pool_create(NULL, &pool) == CW_OK);
    block = cw_pool_zalloc(pool, 4);
    CHECK(block != NULL);
    memset(block, 5, 1000);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        errno = 0;
        CHECK(cw_pool_alloc(pool, 0) == NULL && errno == EINVAL && cw_pool_zalloc_bytes(pool, MIB) == NULL);
        CHECK(cw_pool_free(pool, block, 4) == CW_EFORKED && cw_pool_free_bytes(pool, block, 1) == CW_EFORKED);
        CHECK(cw_pool_scrub(pool, 1, NULL) == CW_EFORKED && cw_pool_trim(pool, NULL) == CW_EFORKED);
        stats.struct_size = sizeof stats;
        CHECK(cw_pool_stats(pool, &stats) == CW_EFORKED && cw_pool_pause(pool) == 0);
        cw_pool_resume(pool);
        CHECK(cw_pool_contains(pool, block) == 1 && cw_pool_message()[0] != 0);
        CHECK(block[999] == 5 && block[1000] == 0);
        block[999] = 6;
        cw_pool_destroy(pool);
        CHECK(cw_pool_free(pool, block, 4) == CW_ECLOSED);
        CHECK(cw_pool_create(&config, &own) == CW_OK && cw_pool_zalloc(own, 0) != NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(block[999] == 5 && cw_pool_free(pool, block, 4) == CW_OK);
    cw_pool_destroy(pool);
}

int main(void)
{
    int code;
    for (code = CW_OK; code <= CW_EFORKED; code++)
        CHECK(strcmp(cw_strerror(code), "unknown error") != 0);
    CHECK(strcmp(cw_strerror(CW_EFORKED + 1), "unknown error") == 0);
    CHECK(strcmp(cw_strerror(-1), "unknown error") == 0);
    defaults();
    settings();
    flags();
    blocks();
    in_bytes();
    forked();
    background();
    by_itself();
    puts("contract kept");
    return 0;
}
