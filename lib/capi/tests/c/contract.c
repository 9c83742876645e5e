/* Every function of the header once and more, in the C of 1989: results, errno, hints that are
 * none, sizes of 0 with no buffer. */
#include <cachewise.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char from[70000], to[70000], expected[70000];
static int line;

#define CHECK(condition)                                                                          \
    do {                                                                                          \
        if (!(condition) || errno != 77) {                                                        \
            printf("line %d, errno %d: %s\n", __LINE__, errno, #condition);                       \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static void one_size(size_t n)
{
    int hint;
    memcpy(expected, from, n);
    errno = 77;
    CHECK(cw_copy(to, from, n) == to);
    CHECK(memcmp(to, expected, n) == 0);
    CHECK(cw_equal(to, from, n) == 1);
    CHECK(cw_compare(to, from, n) == 0);
    CHECK(cw_fill(to, 0x1A5, n) == to);
    CHECK(n == 0 || (to[0] == 0xA5 && to[n - 1] == 0xA5));
    if (n > 0) {
        CHECK(cw_equal(to, from, n) == 0);
        from[n - 1] ^= 0x80;
        CHECK((cw_compare(from, expected, n) > 0) == (from[n - 1] > expected[n - 1]));
        CHECK((cw_compare(expected, from, n) > 0) == (from[n - 1] < expected[n - 1]));
        from[n - 1] ^= 0x80;
    }
    CHECK(cw_zero(to, n) == to);
    CHECK(n == 0 || (to[0] == 0 && to[n - 1] == 0));
    /* 7 and -1 are no hints, and so none. */
    for (hint = -1; hint < 8; hint++) {
        enum cw_reuse reuse = (enum cw_reuse)hint;
        CHECK(cw_copy_hint(to, from, n, reuse) == to && cw_equal(to, from, n));
        CHECK(cw_move_hint(to + 1, to, n, reuse) == to + 1 && cw_equal(to + 1, from, n));
        CHECK(cw_fill_hint(to, 3, n, reuse) == to && (n == 0 || to[n - 1] == 3));
        CHECK(cw_zero_hint(to, n, reuse) == to && (n == 0 || to[n - 1] == 0));
    }
    CHECK(cw_copy(to, from, n) == to && cw_move(to + 1, to, n) == to + 1);
    CHECK(cw_equal(to + 1, from, n) == 1);
}

/* Blocks of just that size: a checker of memory sees a read behind them, and bytes behind them
 * that differ must make no difference. */
static void blocks_of(size_t n)
{
    unsigned char *a = malloc(n), *b = malloc(n);
    errno = 77;
    CHECK(a != NULL && b != NULL);
    memcpy(a, from, n);
    memcpy(b, from, n);
    CHECK(cw_compare(a, b, n) == 0 && cw_equal(a, b, n) == 1);
    b[n / 2] ^= 0x80;
    CHECK((cw_compare(a, b, n) > 0) == (a[n / 2] > b[n / 2]) && cw_equal(a, b, n) == 0);
    free(a);
    free(b);
    a = from + 100;
    memcpy(to, a, n);
    to[n] = (unsigned char)~a[n];
    CHECK(cw_compare(to, a, n) == 0 && cw_equal(to, a, n) == 1);
}

int main(void)
{
    char text[512], shorter[9];
    size_t n, length;
    int i;

    for (n = 0; n < sizeof from; n++) {
        from[n] = (unsigned char)(n * 2654435761u >> 11);
    }
    line = 0;
    errno = 77;
    /* The first call of the process, and large: it reads the profile. */
    CHECK(cw_copy(to, from, 69999) == to && memcmp(to, from, 69999) == 0);
    cw_init();
    CHECK(cw_copy(NULL, NULL, 0) == NULL && cw_equal(NULL, NULL, 0) == 1);
    CHECK(cw_compare(NULL, NULL, 0) == 0 && cw_zero(NULL, 0) == NULL);
    for (n = 0; n < 700; n++) {
        one_size(n);
    }
    for (n = 1; n < 70; n++) {
        blocks_of(n);
    }
    one_size(4096);
    one_size(65537);

    length = cw_profile_source(text, sizeof text);
    CHECK(length > 0 && length < sizeof text && strlen(text) == length);
    CHECK(cw_profile_source(NULL, 0) == length);
    CHECK(cw_profile_source(shorter, sizeof shorter) == length && strlen(shorter) == 8);
    CHECK(strncmp(shorter, text, 8) == 0);
    CHECK(strcmp(cw_decision(CW_COPY, CW_REUSE_UNKNOWN, 8), "inlined") == 0);
    for (i = CW_COPY; i <= CW_EQUAL; i++) {
        const char *name = cw_decision((enum cw_operation)i, CW_REUSE_SOON, 1 << 20);
        CHECK(name != NULL && (strchr(name, '.') != NULL || strcmp(name, "libc") == 0));
    }
    CHECK(cw_decision((enum cw_operation)6, CW_REUSE_SOON, 1) == NULL);
    sprintf(text, "%d.%d.%d", CW_VERSION_MAJOR, CW_VERSION_MINOR, CW_VERSION_PATCH);
    CHECK(strcmp(text, cw_version()) == 0);
    puts("contract kept");
    return line;
}
