/* Operations at sites, every byte looked at; "s" as argument saves. Says what is known of one. */
#include <cachewise.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)16 << 20)

static struct cw_site one = CW_SITE("one name");
static struct cw_site same = CW_SITE("one name");
static struct cw_site unnamed = CW_SITE(NULL);
/* 70 bytes: counts to the 64th. */
static struct cw_site lengthy = CW_SITE(
    "0123456789012345678901234567890123456789012345678901234567890123456789");

static unsigned char *source, *target;

static void fail(const char *what, size_t n)
{
    fprintf(stderr, "wrong after %s of %lu bytes\n", what, (unsigned long)n);
    exit(5);
}

static void filled(const char *what, size_t n, unsigned char byte)
{
    size_t i;
    for (i = 0; i < n; i++) {
        if (target[1 + i] != byte) {
            fail(what, n);
        }
    }
    if (target[0] != 0xEE || target[1 + n] != 0xEE) {
        fail(what, n);
    }
}

static void all(struct cw_site *site, size_t n)
{
    unsigned char *to = target + 1;
    memset(target, 0xEE, n + 2);
    if (cw_copy_at(site, to, source, n) != to || memcmp(to, source, n) != 0) {
        fail("copy", n);
    }
    if (n > 0 && (cw_move_at(site, to, to + 1, n - 1) != to || memcmp(to, source + 1, n - 1))) {
        fail("move", n);
    }
    if (cw_fill_at(site, to, 0x15A, n) != to) {
        fail("fill", n);
    }
    filled("fill", n, 0x5A);
    if (cw_zero_at(site, to, n) != to) {
        fail("zero", n);
    }
    filled("zero", n, 0);
}

int main(int count, char **arguments)
{
    static const size_t sizes[] = {0, 1, 129, 65535, 65536, 1000001, SIZE};
    struct cw_site *sites[5];
    struct cw_site_state state;
    struct { size_t size; int outcome; } old;
    char problem[256];
    size_t i, j;

    sites[0] = NULL;
    sites[1] = &unnamed;
    sites[2] = &lengthy;
    sites[3] = &one;
    sites[4] = &same;
    source = (unsigned char *)malloc(SIZE);
    target = (unsigned char *)malloc(SIZE + 2);
    if (source == NULL || target == NULL || count != 2) {
        return 1;
    }
    for (i = 0; i < SIZE; i++) {
        source[i] = (unsigned char)(i * 7 + (i >> 12));
    }
    for (i = 0; i < sizeof sites / sizeof *sites; i++) {
        for (j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            if (sizes[j] != SIZE || sites[i] != &same) {
                all(sites[i], sizes[j]);
            }
        }
    }
    for (i = 0; i < 39; i++) {
        cw_copy_at(i % 2 ? &one : &same, target, source, SIZE);
    }
    state.size = sizeof state;
    if (cw_site_state(NULL, CW_COPY, SIZE, &state) || cw_site_state(&one, CW_EQUAL, SIZE, &state)
        || cw_site_state(&unnamed, CW_COPY, SIZE, &state)
        || cw_site_state(&one, CW_COPY, 65535, &state)) {
        fail("asking for what there is not", 0);
    }
    if (!cw_site_state(&same, CW_COPY, SIZE, &state)) {
        fail("asking", 0);
    }
    /* A program compiled against a shorter struct gets what it has room for. */
    old.size = sizeof old;
    old.outcome = -1;
    if (!cw_site_state(&one, CW_COPY, SIZE, (struct cw_site_state *)(void *)&old)
        || old.size != sizeof old || old.outcome != (int)state.outcome) {
        fail("asking for less", 0);
    }
    printf("%lu calls%s; ", (unsigned long)state.calls, state.tried > 0 ? ", tried" : "");
    if (strcmp(arguments[1], "s") != 0) {
        puts("not asked to save");
    } else if (cw_sites_save(problem, sizeof problem) == 0) {
        puts("saved");
    } else {
        puts(problem);
    }
    return 0;
}
