/*
 * cachewise_pool.h - blocks of pages that are resident and, on request, already zero: the
 * allocation causes no page fault and no zeroing.
 *
 * Link with -lcachewise_pool (`pkg-config --cflags --libs cachewise_pool`). This library is
 * separate from libcachewise, which allocates nothing and never locks; a pool has memory, locks and
 * a thread.
 *
 * A block of order n is 2^n pages. A pool takes memory from the system as it grows, keeps freed
 * blocks, zeroes idle ones in the background (the scrubber), and returns memory to the
 * system in cw_pool_trim. docs/page-pool.md says where a pool gains and where it does not.
 *
 *   Errors         Functions that return int return 0 or a CW_E... code. Functions that return a
 *                  block return NULL and set errno: ENOMEM if no memory is left; EINVAL for an
 *                  order above the pool's highest, for a block larger than the pool, for NULL, for a
 *                  destroyed pool and in a forked child; EDEADLK in a signal handler that
 *                  interrupted this pool; EFAULT if verification found a block that was not zero.
 *                  cw_pool_message describes the calling thread's last failure in a sentence,
 *                  except that the pool has nothing left. A pointer that cw_pool_create did not
 *                  give is not noticed.
 *   Exceptions     None leave the library: in C++ all functions are noexcept.
 *   Threads        Any thread may call any function on any pool at any time, except
 *                  cw_pool_destroy, which must be the last call on its pool.
 *   Signals        A handler may call cw_pool_alloc, _zalloc and _free with valid blocks. If it
 *                  interrupted the pool in the same thread they may fail, but do not hang.
 *   Fork           In a child made by fork every call on a pool of the parent's fails with
 *                  CW_EFORKED, or NULL; it may make pools of its own. It has its own copy of the
 *                  blocks in use. That does not hold for a lease, CW_POOL_HUGETLB and
 *                  CW_POOL_ENGINE_CUDA: their blocks are not mapped in a child, which calls exec or
 *                  does not touch them. Children of vfork and of clone must not use pools.
 *
 * This header is valid C89 and C++. cachewise_pool.hpp has a memory resource for C++17.
 */
#ifndef CACHEWISE_POOL_H
#define CACHEWISE_POOL_H

#include <stddef.h>

/* The exception specification of every function here. */
#ifndef CW_NOEXCEPT
#if !defined(__cplusplus)
#define CW_NOEXCEPT
#elif __cplusplus >= 201103L
#define CW_NOEXCEPT noexcept
#else
#define CW_NOEXCEPT throw()
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A pool. */
typedef struct cw_pool cw_pool;

/* Why something was refused. */
enum cw_error {
    CW_OK = 0,
    CW_EINVAL = 1,      /* an argument or a setting is outside what is accepted */
    CW_EVERSION = 2,    /* a struct_size that this library does not know */
    CW_EOVERMEMORY = 3, /* more capacity than memory this process may use */
    CW_EEXHAUSTED = 4,  /* no free block that large, and the pool may not grow so far */
    CW_ENOMEM = 5,      /* the system has no memory */
    CW_ESYSTEM = 6,     /* the system refused something else */
    CW_EORDER = 7,      /* above the pool's highest order */
    CW_EFOREIGN = 8,    /* not a block of this pool */
    CW_EMISALIGNED = 9, /* not where a block begins */
    CW_EFREE = 10,      /* a block that is free already: freed twice */
    CW_EWRONGORDER = 11,/* a block of another order */
    CW_ECLOSED = 12,    /* NULL, or a destroyed pool */
    CW_EREENTERED = 13, /* called from a signal handler that interrupted this pool */
    CW_ENOTZERO = 14,   /* a block known to be zero was not; it has been withdrawn */
    CW_EDAMAGED = 15,   /* the pool's bookkeeping was overwritten */
    CW_EFORKED = 16     /* a pool of the parent's, in a child made by fork */
};

/* Flags of a configuration. Other bits are refused. */
#define CW_POOL_NO_SCRUBBER 1u    /* nothing is zeroed in the background */
#define CW_POOL_BASE_PAGES 2u     /* no huge pages */
#define CW_POOL_HUGETLB 4u        /* explicit huge pages; where the system gives none, ordinary ones, and
                                     cw_pool_message() of cw_pool_create says why */
#define CW_POOL_PREFAULT 8u       /* the whole capacity is made resident at once */
#define CW_POOL_VERIFY_ABORT 16u  /* verify_every: a block that is not zero ends the process */
#define CW_POOL_OVER_MEMORY 32u   /* accept a capacity above the memory there is */
#define CW_POOL_ENGINE_THROUGH 64u /* the scrubber uses temporal stores, not non-temporal ones */
#define CW_POOL_ENGINE_SYSTEM 128u /* the scrubber drops pages and has the system populate them */
/* A GPU zeroes, whose driver is loaded at run time. The whole capacity is made resident and registered.
 * Without a device the CPU zeroes, and cw_pool_message() says why. */
#define CW_POOL_ENGINE_CUDA 256u

/*
 * Settings for cw_pool_create. Call cw_pool_config_init first, then change members: members
 * that later versions add then have their defaults.
 */
struct cw_pool_config {
    size_t struct_size;            /* set by cw_pool_config_init */
    size_t capacity;               /* bytes at most; default 256 MiB */
    unsigned max_order;            /* highest order of a block; default and most 18 */
    unsigned flags;                /* CW_POOL_...; default 0 */
    size_t initial;                /* bytes made resident at once; default 0 */
    unsigned verify_every;         /* read every n-th zeroed block at hand-out; default 0, none */
    unsigned scrub_start;          /* order of a dirty block that wakes the scrubber; default 4 */
    unsigned scrub_stop;           /* lowest order it zeroes once awake; default 0 */
    double scrub_load;             /* the machine's load average above which it rests; default: infinity.
                                      In any case it takes 2 % of a CPU while threads wait for CPUs */
    double scrub_cpu_share;        /* its share of one CPU at most; default 0.5 */
    size_t scrub_min_idle_ms;      /* it zeroes only blocks that were idle so long; default 50 */
    const char *leased;            /* socket of `cachewise scrubd`: the capacity is leased there, resident
                                      and zero; "" is the usual socket. Without a lease within 1 s, and
                                      1 s more for each GiB, the pool has memory of its own, and
                                      cw_pool_message says why. Default NULL: no lease */
    size_t give_back_ms;           /* free memory idle for so long goes back to the system by itself;
                                      default 0: it stays until cw_pool_trim */
};

/* Figures of one moment; bytes unless the name says otherwise. */
struct cw_pool_stats {
    size_t struct_size;       /* set it to sizeof(struct cw_pool_stats), and the rest to 0 */
    size_t capacity;          /* what the pool may grow to */
    size_t managed;           /* its size now: the sum of the next seven */
    size_t allocated;         /* in use by the program */
    size_t cached;            /* in threads' caches */
    size_t dirty;             /* free, contents unknown */
    size_t in_flight;         /* being zeroed or returned to the system */
    size_t zero_resident;     /* free, zero, resident */
    size_t zero_absent;       /* free, zero, not resident: will fault */
    size_t quarantined;       /* withdrawn */
    size_t resident;          /* the most that the pool holds of the machine's memory */
    size_t zero_hits;         /* zeroed requests, number, served by a block already zero */
    size_t zero_misses;       /* zeroed requests, number, that had to be zeroed or faulted in */
    size_t dirty_allocations; /* other requests, number */
    size_t frees;             /* blocks taken back, number */
    size_t hot_zeroed;        /* zeroed at hand-out */
    size_t populated;         /* faulted in at hand-out */
    size_t scrubbed;          /* zeroed in the background or by cw_pool_scrub */
    size_t scrub_cpu_ns;      /* CPU time of that, nanoseconds */
    size_t wasted;            /* zeroed, and then not used as zero */
    size_t trimmed;           /* returned to the system */
    size_t verified;          /* blocks, number, read by verifying */
    size_t verify_failed;     /* blocks, number, that were not zero when they should have been */
    size_t quarantined_ever;  /* withdrawn since the start */
    size_t engine_faults;     /* batches, number, that the scrubber's engine failed to zero */
    size_t load_rests;        /* how often the scrubber rested as no CPU was idle, or by scrub_load */
};

/* Fills in the defaults. */
void cw_pool_config_init(struct cw_pool_config *config) CW_NOEXCEPT;

/* Makes a pool; a NULL configuration is the defaults. On an error *out is NULL. */
int cw_pool_create(const struct cw_pool_config *config, cw_pool **out) CW_NOEXCEPT;

/* A block of 2^order pages with any contents; NULL when there is none. Aligned to its size, as far
 * as that is 2 MiB or less. */
void *cw_pool_alloc(cw_pool *pool, unsigned order) CW_NOEXCEPT;

/* A block of 2^order pages, every byte zero; NULL when there is none. */
void *cw_pool_zalloc(cw_pool *pool, unsigned order) CW_NOEXCEPT;

/* As cw_pool_zalloc, for a caller that will write or read the whole block at once: it zeroes a
 * block that this thread freed recently, which is still in the CPU's cache. */
void *cw_pool_zalloc_to_fill(cw_pool *pool, unsigned order) CW_NOEXCEPT;

/* Frees a block; NULL does nothing. A block that is not this pool's,
 * has another order or is free already is refused, and nothing is changed. */
int cw_pool_free(cw_pool *pool, void *block, unsigned order) CW_NOEXCEPT;

/* The same with sizes in bytes: such a block has as many pages as the bytes need, at least one and at most all of the
 * pool, and begins at a page. cw_pool_free_bytes takes the size that the block has. */
void *cw_pool_alloc_bytes(cw_pool *pool, size_t bytes) CW_NOEXCEPT;
void *cw_pool_zalloc_bytes(cw_pool *pool, size_t bytes) CW_NOEXCEPT;
int cw_pool_free_bytes(cw_pool *pool, void *block, size_t bytes) CW_NOEXCEPT;

/* 1 if an address lies in the pool, else 0. */
int cw_pool_contains(const cw_pool *pool, const void *address) CW_NOEXCEPT;

/* Zeroes free dirty blocks now, in this thread, at most max_bytes (or one block more);
 * *scrubbed, unless NULL, is set to the bytes zeroed. */
int cw_pool_scrub(cw_pool *pool, size_t max_bytes, size_t *scrubbed) CW_NOEXCEPT;

/* Returns all idle memory to the system; *bytes, unless NULL, is set to the bytes returned. */
int cw_pool_trim(cw_pool *pool, size_t *bytes) CW_NOEXCEPT;

/* Figures of this moment, as far as out->struct_size reaches. In C++ a function would hide the structure of
 * its name: there only the first name is declared. */
int cw_pool_get_stats(const cw_pool *pool, struct cw_pool_stats *out) CW_NOEXCEPT;
#ifndef __cplusplus
int cw_pool_stats(const cw_pool *pool, struct cw_pool_stats *out) CW_NOEXCEPT;
#endif

/* Bytes of a block of order 0; 0 where there is no such pool. */
size_t cw_pool_page_size(const cw_pool *pool) CW_NOEXCEPT;

/* cw_pool_pause stops the scrubber: 1 if it stopped within 10 ms, else 0. cw_pool_resume continues it. */
int cw_pool_pause(cw_pool *pool) CW_NOEXCEPT;
void cw_pool_resume(cw_pool *pool) CW_NOEXCEPT;

/* Destroys the pool and unmaps all its blocks, including those in use; NULL does nothing. Later
 * calls on the same pool fail with CW_ECLOSED; the handle's few bytes are kept for that. */
void cw_pool_destroy(cw_pool *pool) CW_NOEXCEPT;

/* The meaning of a code. The string lives as long as the library is loaded. */
const char *cw_strerror(int code) CW_NOEXCEPT;

/* The calling thread's last failure: the setting, what was found, what is accepted. Empty
 * if there was none. Valid until the thread's next call that fails. */
const char *cw_pool_message(void) CW_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* CACHEWISE_POOL_H */
