/*
 * A publisher: a state is copied to whoever asked for it. Whether the copy is read at once, by this
 * program, depends on who asked, and the place that copies does not know.
 *
 * Shows a site: the place has a name, and its own time decides which way the copies go. What it has
 * found is printed, and would be kept for the next run by cw_sites_save.
 *
 *     cc publisher.c $(pkg-config --cflags --libs cachewise) -o publisher
 */
#include <cachewise.h>

#include <stdio.h>
#include <stdlib.h>

#define STATE ((size_t)2 << 20)
#define READERS 8

static struct cw_site publish = CW_SITE("publish a state");

static unsigned long sum(const unsigned char *bytes, size_t n)
{
    unsigned long total = 0;
    size_t i;
    for (i = 0; i < n; i += 64) {
        total += bytes[i];
    }
    return total;
}

int main(void)
{
    static const char *const words[] = {"too few calls to tell",
                                        "temporal stores",
                                        "non-temporal stores",
                                        "no difference",
                                        "no difference that lasts",
                                        "the program has changed"};
    unsigned char *state = (unsigned char *)malloc(STATE);
    unsigned char *copies = (unsigned char *)malloc(READERS * STATE);
    struct cw_site_state known;
    unsigned long expected, wrong = 0;
    int round;

    if (state == NULL || copies == NULL) {
        return 1;
    }
    cw_fill(state, 3, STATE);
    expected = sum(state, STATE);
    for (round = 0; round < 400; round++) {
        unsigned char *copy = copies + (size_t)(round % READERS) * STATE;
        cw_copy_at(&publish, copy, state, STATE);
        wrong += sum(copy, STATE) != expected;
    }
    known.size = sizeof known;
    if (cw_site_state(&publish, CW_COPY, STATE, &known)) {
        printf("%lu calls, %lu of them tried: %s\n", (unsigned long)known.calls,
               (unsigned long)known.tried, words[known.outcome]);
    } else {
        puts("on this machine nothing can be gained at that size");
    }
    puts(wrong == 0 ? "all published" : "WRONG BYTES");
    free(state);
    free(copies);
    return wrong != 0;
}
