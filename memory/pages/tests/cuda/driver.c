/*
 * The driver's entry points that this project calls, for tests without a device:
 *
 *   cc -shared -fPIC -O1 -pthread -o libcuda.so.1 driver.c
 *
 * It zeroes host memory with the CPU, in the order of one stream, as CACHEWISE_TEST_DRIVER says:
 *
 *   good       (or unset) at once
 *   late       a batch is done 20 ms after it was submitted, or when it is waited for
 *   never      no batch ends, and the device writes at each query
 *   partial    the second half of each batch stays as it is, and the next query says that this failed
 *   hole       a page in the middle of each range stays as it is; all is well, it says
 *   last       the last line of each range stays as it is
 *   first      the first line of each range stays as it is
 *   elsewhere  each range but the first is zeroed in the place of the one before
 *   fails      every submission is refused
 *   lost       from the third submission on every call says that the device is lost
 *   none       there is no device
 *   MODE@N     good for the first N ranges, then as said
 *
 * What it is told about registrations it checks: pieces of less than 512 GiB, none twice, none
 * unregistered that is not there, none left when the context goes. A line on stderr and the error
 * "invalid value" tell of what is wrong; CACHEWISE_TEST_DRIVER_LOG names a file that gets a line a call.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, LOST = 700, NOT_READY = 600,
       ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, LAUNCH_FAILED = 719 };

static const char *mode(void)
{
    const char *named = getenv("CACHEWISE_TEST_DRIVER");
    return named && *named ? named : "good";
}

static int retained, submissions, failed, pushed;

static int is(const char *name)
{
    const char *from = strchr(mode(), '@');
    size_t length = from ? (size_t)(from - mode()) : strlen(mode());
    return strlen(name) == length && strncmp(mode(), name, length) == 0 && (!from || submissions > atoi(from + 1));
}

static struct { uintptr_t start; size_t size; } pieces[4096];
static size_t piece_count;
static double last;
static uint64_t before;
static size_t before_size;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void tell(const char *call, uintptr_t start, size_t size)
{
    const char *path = getenv("CACHEWISE_TEST_DRIVER_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %zx %zu\n", call, (size_t)start, size);
        fclose(file);
    }
}

static int wrong(const char *what)
{
    fprintf(stderr, "test driver: %s\n", what);
    tell("wrong", 0, 0);
    return INVALID_VALUE;
}

static int is_lost(void) { return is("lost") && submissions >= 3; }

int cuInit(unsigned flags) { return is("none") ? NO_DEVICE : flags ? INVALID_VALUE : SUCCESS; }

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? SUCCESS : 101;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    retained++;
    *context = &retained;
    return device == 0 ? SUCCESS : INVALID_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    if (--retained == 0 && piece_count != 0 && !is_lost()) {
        return wrong("a context released with memory registered");
    }
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context)
{
    pushed++;
    return context == &retained ? SUCCESS : wrong("another context");
}

int cuCtxPopCurrent_v2(void **context)
{
    *context = &retained;
    return pushed-- > 0 ? SUCCESS : wrong("no context to pop");
}

int cuMemHostRegister_v2(void *start, size_t size, unsigned flags)
{
    (void)flags;
    if (is_lost()) {
        return LOST;
    }
    if (pushed <= 0) {
        return wrong("registered outside a context");
    }
    if (size == 0 || size >= (size_t)512 << 30) {
        return wrong("a registration of no bytes, or of 512 GiB and more");
    }
    for (size_t at = 0; at < piece_count; at++) {
        if ((uintptr_t)start < pieces[at].start + pieces[at].size && pieces[at].start < (uintptr_t)start + size) {
            return ALREADY_REGISTERED;
        }
    }
    if (piece_count == sizeof pieces / sizeof pieces[0]) {
        return OUT_OF_MEMORY;
    }
    pieces[piece_count].start = (uintptr_t)start;
    pieces[piece_count++].size = size;
    /* Pinned memory is resident: it is read, as it may be unmapped already. */
    volatile const char *bytes = start;
    for (size_t offset = 0; offset < size; offset += 4096) {
        (void)bytes[offset];
    }
    tell("register", (uintptr_t)start, size);
    return SUCCESS;
}

int cuMemHostUnregister(void *start)
{
    if (is_lost()) {
        return LOST;
    }
    for (size_t at = 0; at < piece_count; at++) {
        if (pieces[at].start == (uintptr_t)start) {
            /* Unregistered before it is unmapped. */
            volatile const char *bytes = start;
            (void)bytes[0];
            tell("unregister", (uintptr_t)start, pieces[at].size);
            pieces[at] = pieces[--piece_count];
            return SUCCESS;
        }
    }
    wrong("unregistered what is not registered");
    return NOT_REGISTERED;
}

int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    *stream = &submissions;
    return SUCCESS;
}

int cuStreamDestroy_v2(void *stream)
{
    (void)stream;
    failed = 0;
    return is_lost() ? LOST : SUCCESS;
}

static int is_registered(uintptr_t start, size_t size)
{
    for (size_t at = 0; at < piece_count; at++) {
        if (pieces[at].start <= start && start + size <= pieces[at].start + pieces[at].size) {
            return 1;
        }
    }
    return 0;
}

int cuMemsetD32Async(uint64_t start, unsigned value, size_t count, void *stream)
{
    char *bytes = (char *)(uintptr_t)start;
    size_t size = count * 4;
    (void)stream;
    submissions++;
    if (is_lost()) {
        return LOST;
    }
    if (is("fails")) {
        return OUT_OF_MEMORY;
    }
    if (value != 0 || !is_registered((uintptr_t)start, size)) {
        return wrong("a range that is not registered, or not to be zeroed");
    }
    last = now();
    if (is("hole") && size >= 3 * 4096) {
        size_t middle = size / 2 & ~(size_t)4095;
        memset(bytes, 0, middle);
        memset(bytes + middle + 4096, 0, size - middle - 4096);
    } else if (is("last")) {
        memset(bytes, 0, size - 64);
    } else if (is("first")) {
        memset(bytes + 64, 0, size - 64);
    } else if (is("partial")) {
        memset(bytes, 0, size / 2);
        failed = 1;
    } else if (is("elsewhere") && before_size != 0) {
        memset((char *)(uintptr_t)before, 0, before_size < size ? before_size : size);
    } else {
        memset(bytes, 0, size);
    }
    before = start;
    before_size = size;
    return SUCCESS;
}

int cuStreamQuery(void *stream)
{
    (void)stream;
    if (is_lost()) {
        return LOST;
    }
    if (failed) {
        failed = 0;
        return LAUNCH_FAILED;
    }
    if (is("never")) {
        memset((char *)(uintptr_t)before, 0xDD, 64);
    }
    return is("never") || (is("late") && now() < last + 0.02) ? NOT_READY : SUCCESS;
}

int cuStreamSynchronize(void *stream)
{
    (void)stream;
    while (is("late") && now() < last + 0.02) {
    }
    return is_lost() ? LOST : is("never") ? wrong("this wait has no end") : SUCCESS;
}

int cuGetErrorString(int code, const char **text)
{
    switch (code) {
    case NO_DEVICE: *text = "no CUDA-capable device is detected"; break;
    case OUT_OF_MEMORY: *text = "out of memory"; break;
    case LOST: *text = "an illegal memory access was encountered"; break;
    case ALREADY_REGISTERED: *text = "part or all of the requested memory range is already mapped"; break;
    default: *text = "an error"; break;
    }
    return SUCCESS;
}
