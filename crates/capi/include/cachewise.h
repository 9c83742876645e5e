/*
 * cachewise.h - copy, zero and compare memory the way this machine's measured profile says.
 *
 * Link with -lcachewise (`pkg-config --cflags --libs cachewise`).
 *
 * The functions have the contracts of memcpy, memmove, memset and memcmp. What they do with a size
 * is decided by a profile: the file that CACHEWISE_PROFILE names, else this user's for this CPU
 * (made by `cachewise tune`), else one that came with the library, else defaults computed from the
 * CPU's caches. A profile that is missing, unreadable, damaged or made for another CPU never breaks
 * a program: one line on stderr, which CACHEWISE_QUIET=1 silences, and the next source decides. A
 * program that runs with more privilege than its caller (set-user-id and the like) looks at neither
 * the environment nor the user's files.
 *
 * What holds for every function here, but those where it says otherwise:
 *
 *   Errors         There are none to report. Sizes may be anything from 0 to SIZE_MAX; with a size
 *                  of 0 nothing is touched and any pointer will do, NULL included. A pointer that
 *                  is not valid for the size given is undefined behaviour, as it is for memcpy.
 *   Threads        Any thread may call any function at any time. Nothing locks.
 *   Signals        Async-signal-safe, the first call of a process included; also in constructors
 *                  before main and in a forked child.
 *   errno          Never changed.
 *   Allocation     None. The first call maps a few pages to read the profile, and unmaps them.
 *   Exceptions     None leave the library, and nothing unwinds through it.
 *   Ordering       Non-temporal stores are fenced before return, so that another thread
 *                  may be told in the usual ways that the data is there.
 *
 * This header is C89 but for <stddef.h>'s size_t, and C++.
 */
#ifndef CACHEWISE_H
#define CACHEWISE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface that this header describes; cw_version has the library's. */
#define CW_VERSION_MAJOR 0
#define CW_VERSION_MINOR 1
#define CW_VERSION_PATCH 0

/*
 * When the destination will be used again, as far as the caller knows. Size alone cannot decide
 * between temporal stores, which leave the destination in the cache, and non-temporal ones, which do
 * not: what matters most is who touches the destination next, and only the caller knows that.
 *
 * A hint never changes the result. Any other value counts as CW_REUSE_UNKNOWN.
 */
enum cw_reuse {
    CW_REUSE_UNKNOWN = 0, /* not known: a later reader is weighed against everybody else's cache */
    CW_REUSE_SOON = 1,    /* read soon: leave the destination in the cache */
    CW_REUSE_NEVER = 2    /* not read again by this CPU: leave the cache to others */
};

/* What cw_decision can be asked about. */
enum cw_operation {
    CW_COPY = 0,
    CW_MOVE = 1,
    CW_FILL = 2,
    CW_ZERO = 3,
    CW_COMPARE = 4,
    CW_EQUAL = 5
};

/*
 * Copies n bytes from src to dst, which must not overlap, and returns dst.
 */
void *cw_copy(void *dst, const void *src, size_t n);

/*
 * Copies n bytes from src to dst, which may overlap, and returns dst.
 */
void *cw_move(void *dst, const void *src, size_t n);

/*
 * Stores the low eight bits of byte in the n bytes at dst, and returns dst.
 */
void *cw_fill(void *dst, int byte, size_t n);

/*
 * Stores zero in the n bytes at dst, and returns dst. Apart from cw_fill, since whole lines of
 * zeros can be written in ways that other values cannot.
 */
void *cw_zero(void *dst, size_t n);

/*
 * The order of n bytes, as memcmp: negative, zero or positive as the first byte of a that differs
 * from b's is less, there is none, or it is greater; bytes are unsigned. The size of the number
 * means nothing.
 */
int cw_compare(const void *a, const void *b, size_t n);

/*
 * 1 if the n bytes are equal, else 0. Faster than cw_compare where the order is of no interest. Not
 * for secrets: how long it takes depends on where the first difference is.
 */
int cw_equal(const void *a, const void *b, size_t n);

/*
 * The same with a hint of what happens to the destination next.
 */
void *cw_copy_hint(void *dst, const void *src, size_t n, enum cw_reuse reuse);
void *cw_move_hint(void *dst, const void *src, size_t n, enum cw_reuse reuse);
void *cw_fill_hint(void *dst, int byte, size_t n, enum cw_reuse reuse);
void *cw_zero_hint(void *dst, size_t n, enum cw_reuse reuse);

/*
 * A place of the program that copies or fills where nobody knows whether the destination is read
 * soon. Its large calls (64 KiB and more, where the profile has both) are tried with temporal and
 * with non-temporal stores, and the time from one call of the site to its next on the same thread decides: copy,
 * reader and everybody else's cache are in it. At most 2 % of the site's time goes into calls tried
 * with the slower stores. Sizes of different octaves, and the operations, are decided apart.
 *
 *     static struct cw_site snapshot = CW_SITE("snapshot");
 *     cw_copy_at(&snapshot, dst, src, n);
 *
 * The name is what the site is known by in the next process; sites with the same name are one. It
 * ends in NUL, is printable ASCII, counts to its 64th byte, and lives as long as the site, which need
 * not live as long as the process. With a site of NULL or without a name the call does as the one
 * without a site.
 *
 * With CACHEWISE_LEARN=0 in the environment sites follow what was saved and try nothing; with
 * CACHEWISE_LEARN=trial they try without regard to the 2 %.
 */
struct cw_site {
    const char *name;
    size_t reserved[3]; /* the library's */
};

#define CW_SITE(name)                                                                              \
    {                                                                                              \
        (name), { 0, 0, 0 }                                                                        \
    }

/*
 * As cw_copy, cw_move, cw_fill and cw_zero, at a site.
 */
void *cw_copy_at(struct cw_site *site, void *dst, const void *src, size_t n);
void *cw_move_at(struct cw_site *site, void *dst, const void *src, size_t n);
void *cw_fill_at(struct cw_site *site, void *dst, int byte, size_t n);
void *cw_zero_at(struct cw_site *site, void *dst, size_t n);

/* What a site's own calls have said. */
enum cw_site_outcome {
    CW_SITE_TOO_FEW = 0,       /* not yet enough calls: they go as the profile says */
    CW_SITE_TEMPORAL = 1,      /* temporal stores are faster, and calls use them */
    CW_SITE_NON_TEMPORAL = 2,  /* non-temporal stores are */
    CW_SITE_NO_DIFFERENCE = 3, /* too small for the noise, or none: as the profile says */
    CW_SITE_UNCONFIRMED = 4,   /* long blocks did not confirm short ones: as the profile says */
    CW_SITE_REOPENED = 5       /* was decided, and the program has changed: being tried again */
};

/*
 * What is known of a site's calls of one operation and of sizes of n's octave. size is set by the
 * caller to sizeof(struct cw_site_state). The times are mean nanoseconds from call to call, 0 where
 * nothing was tried. Returns 1; or 0, and nothing is written, where there was no such call yet or the
 * profile has one way only, where operation is none of the four, or while another thread is at it.
 */
struct cw_site_state {
    size_t size;
    enum cw_site_outcome outcome;
    size_t calls; /* those of earlier processes that were kept among them */
    size_t tried; /* calls done otherwise than they would have been */
    double temporal_ns;
    double non_temporal_ns;
};
int cw_site_state(struct cw_site *site, enum cw_operation operation, size_t n,
                  struct cw_site_state *state);

/*
 * Keeps what all sites have learned for the next process, which then starts decided: in the file that
 * CACHEWISE_PROGRAM names, else in the user's for this program, beside the profile. Nothing is saved
 * by itself; a service calls this now and then, others before they end. What other processes saved
 * meanwhile is kept. Returns 0 where it is done or there is nothing to do; otherwise the length of a
 * text that says why not, of which at most capacity bytes, the final NUL included, are written to
 * problem; with a capacity of 0, problem may be NULL. Takes the time of writing a file, and up to
 * half a second where others save at the moment.
 */
size_t cw_sites_save(char *problem, size_t capacity);

/*
 * Large operations by several threads, where their size makes that pay on this machine: from how
 * many bytes on how many threads do is in the profile, and no more are used. The threads are made
 * for the call, take no signals, and end with it; one that the system refuses is done without, and
 * the calling thread works too. With threads 0 there are as many as CPUs that this process may use.
 * Returns dst.
 *
 * Unlike the others these are not async-signal-safe, and the C library may allocate for a thread.
 */
void *cw_copy_parallel(void *dst, const void *src, size_t n, enum cw_reuse reuse, size_t threads);
void *cw_zero_parallel(void *dst, size_t n, enum cw_reuse reuse, size_t threads);

/*
 * The same by threads that the caller already has. run(pool, threads, job, argument) has up to that
 * many threads, the calling one among them, call job(argument) once each, and returns when all of
 * them have returned; fewer are allowed, the work is done all the same. size is sizeof(struct
 * cw_workers), threads how many there are for a call, the calling one among them. Without workers,
 * or without a function, the calling thread works alone.
 */
struct cw_workers {
    size_t size;
    size_t threads;
    void *pool;
    void (*run)(void *pool, size_t threads, void (*job)(void *argument), void *argument);
};
void *cw_copy_workers(void *dst, const void *src, size_t n, enum cw_reuse reuse,
                      const struct cw_workers *workers);
void *cw_zero_workers(void *dst, size_t n, enum cw_reuse reuse, const struct cw_workers *workers);

/*
 * Reads the profile now rather than in the first call of more than some hundred bytes. Never
 * needed; it keeps some tens of microseconds out of a later call. Calling it again does nothing.
 */
void cw_init(void);

/*
 * The library's version, as "0.1.0". The string lives as long as the library is loaded.
 */
const char *cw_version(void);

/*
 * Where the decisions come from, as a sentence's part: a profile's path, or "defaults computed from
 * this CPU's caches". At most capacity bytes of it, the final NUL included, are written to buffer;
 * with a capacity of 0 none are, and buffer may be NULL. Returns the length of the whole text,
 * without the NUL: the text was cut short if that is not less than capacity.
 */
size_t cw_profile_source(char *buffer, size_t capacity);

/*
 * Which kernel a call of that size would be done by, for example "copy.avx.nt.ends"; "libc" where the
 * profile leaves that size to the C library; "inlined" below the sizes that are decided by profile. The string lives as long as the library is loaded. NULL
 * where operation is none of enum cw_operation. A hint makes no difference to a comparison.
 */
const char *cw_decision(enum cw_operation operation, enum cw_reuse reuse, size_t n);

#ifdef __cplusplus
}
#endif

#endif /* CACHEWISE_H */
