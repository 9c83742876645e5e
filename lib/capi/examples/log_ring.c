/*
 * A log writer: records are appended to a ring of buffers, and a full buffer goes to a file.
 *
 * Shows where a hint is given; what it does at that size on this machine, the first lines print. A
 * record was just made and is small: no hint. A full buffer is copied to the place it is written
 * from, which this CPU never reads again: CW_REUSE_NEVER keeps the cache for the records.
 *
 *     cc log_ring.c $(pkg-config --cflags --libs cachewise) -o log_ring
 */
#include <cachewise.h>

#include <stdio.h>
#include <stdlib.h>

#define BUFFER ((size_t)1 << 20)

struct ring {
    unsigned char *filling;
    unsigned char *outgoing;
    size_t used;
    unsigned long written;
};

/* A real program would give it to the device. */
static void send_out(struct ring *ring)
{
    cw_copy_hint(ring->outgoing, ring->filling, ring->used, CW_REUSE_NEVER);
    ring->written += (unsigned long)ring->used;
    ring->used = 0;
}

static void append(struct ring *ring, const void *record, size_t length)
{
    if (ring->used + length > BUFFER) {
        send_out(ring);
    }
    cw_copy(ring->filling + ring->used, record, length);
    ring->used += length;
}

int main(void)
{
    struct ring ring;
    char record[300], source[256];
    unsigned long expected = 0;
    int i;

    ring.filling = (unsigned char *)malloc(BUFFER);
    ring.outgoing = (unsigned char *)malloc(BUFFER);
    ring.used = 0;
    ring.written = 0;
    if (ring.filling == NULL || ring.outgoing == NULL) {
        return 1;
    }
    cw_init();
    cw_profile_source(source, sizeof source);
    printf("cachewise %s follows %s\n", cw_version(), source);
    printf("a full buffer is copied by %s\n", cw_decision(CW_COPY, CW_REUSE_NEVER, BUFFER));

    for (i = 0; i < 20000; i++) {
        size_t length = (size_t)(40 + i % 200);
        cw_fill(record, 'a' + i % 26, length);
        append(&ring, record, length);
        expected += (unsigned long)length;
    }
    send_out(&ring);
    i = ring.written == expected && cw_equal(ring.outgoing, ring.filling, 1000);
    printf("%lu bytes %s\n", ring.written, i ? "sent" : "LOST");
    free(ring.filling);
    free(ring.outgoing);
    return i ? 0 : 1;
}
