/*
 * cachewise.h - copy, zero and compare memory the way this machine's measured profile says.
 *
 * Link with -lcachewise (`pkg-config --cflags --libs cachewise`).
 *
 * The functions have the contracts of memcpy, memmove, memset and memcmp. What they do with a size
 * is decided by a profile: the file that CACHEWISE_PROFILE names, else this user's for this CPU
 * (made by `cachewise tune`), else the machine's in /etc/cachewise, else one that came with the
 * library, else defaults computed from the CPU's caches. A profile that is missing, unreadable,
 * damaged or made for another CPU never breaks a program: one line on stderr says so (none with
 * CACHEWISE_QUIET=1), and the next source decides. A program that runs with more privilege than its
 * caller (set-user-id and the like) ignores the environment and the user's files.
 *
 * For every function here, unless its comment says otherwise:
 *
 *   Errors         None. Sizes may be anything from 0 to SIZE_MAX; with a size of 0 nothing is
 *                  touched and any pointer is allowed, NULL included. A pointer that is not valid
 *                  for the given size is undefined behaviour, as for memcpy.
 *   Threads        Any thread may call any function at any time. Nothing locks.
 *   Signals        Async-signal-safe, the first call of a process included; also in constructors
 *                  before main and in a forked child.
 *   errno          Never changed.
 *   Allocation     None. The first call maps a few pages to read the profile, and unmaps them.
 *   Exceptions     None leave the library, and nothing unwinds through it: in C++ all are noexcept.
 *   Ordering       Non-temporal stores are fenced before return, so the usual ways to tell
 *                  another thread that the data is written are correct.
 *
 * This header is valid C89 and C++.
 */
#ifndef CACHEWISE_H
#define CACHEWISE_H

#include <stddef.h>

/* The exception specification of every function here. */
#if !defined(__cplusplus)
#define CW_NOEXCEPT
#elif __cplusplus >= 201103L
#define CW_NOEXCEPT noexcept
#else
#define CW_NOEXCEPT throw()
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface that this header describes; cw_version has the library's. */
#define CW_VERSION_MAJOR 0
#define CW_VERSION_MINOR 2
#define CW_VERSION_PATCH 0

/*
 * When the destination will be used again, as far as the caller knows. Size alone cannot decide
 * between temporal stores, which leave the destination in the cache, and non-temporal stores, which
 * do not: the next access to the destination matters most, and only the caller knows about that.
 *
 * A hint never changes the result. Any other value counts as CW_REUSE_UNKNOWN.
 */
enum cw_reuse {
    CW_REUSE_UNKNOWN = 0, /* not known: a compromise between a later reader and other cached data */
    CW_REUSE_SOON = 1,    /* read soon: leave the destination in the cache */
    CW_REUSE_NEVER = 2    /* not read again by this CPU: do not evict other data from the cache */
};

/* The operations, for cw_decision. */
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
void *cw_copy(void *dst, const void *src, size_t n) CW_NOEXCEPT;

/*
 * Copies n bytes from src to dst, which may overlap, and returns dst.
 */
void *cw_move(void *dst, const void *src, size_t n) CW_NOEXCEPT;

/*
 * Stores the low eight bits of byte in the n bytes at dst, and returns dst.
 */
void *cw_fill(void *dst, int byte, size_t n) CW_NOEXCEPT;

/*
 * Stores zero in the n bytes at dst, and returns dst. Separate from cw_fill, since some CPUs have
 * faster instructions for writing zeros.
 */
void *cw_zero(void *dst, size_t n) CW_NOEXCEPT;

/*
 * Compares n bytes as memcmp does: negative if a is less at the first byte that differs, zero if no
 * byte differs, positive if a is greater there; bytes are unsigned. Only the sign has a meaning.
 */
int cw_compare(const void *a, const void *b, size_t n) CW_NOEXCEPT;

/*
 * 1 if the n bytes are equal, else 0. May be faster than cw_compare. Not for secrets: the time depends on
 * where the first difference is.
 */
int cw_equal(const void *a, const void *b, size_t n) CW_NOEXCEPT;

/*
 * The same with a hint of what happens to the destination next.
 */
void *cw_copy_hint(void *dst, const void *src, size_t n, enum cw_reuse reuse) CW_NOEXCEPT;
void *cw_move_hint(void *dst, const void *src, size_t n, enum cw_reuse reuse) CW_NOEXCEPT;
void *cw_fill_hint(void *dst, int byte, size_t n, enum cw_reuse reuse) CW_NOEXCEPT;
void *cw_zero_hint(void *dst, size_t n, enum cw_reuse reuse) CW_NOEXCEPT;

/*
 * Reads the profile now instead of in the first call that depends on it: of more than 64 bytes, or a comparison
 * of more than one. Shorter ones are the same with every profile. Optional: it saves a later call some tens of
 * microseconds. Calling it again does nothing.
 */
void cw_init(void) CW_NOEXCEPT;

/*
 * The library's version, as "0.2.0". The string lives as long as the library is loaded.
 */
const char *cw_version(void) CW_NOEXCEPT;

/*
 * Where the decisions come from: a profile's path, "the profile shipped for ..." a CPU model, or
 * "defaults computed from this CPU's caches". At most capacity bytes, the final NUL included, are written to buffer;
 * if capacity is 0, nothing is written and buffer may be NULL. Returns the length of the whole text
 * without the NUL: the text was truncated if that is not less than capacity.
 */
size_t cw_profile_source(char *buffer, size_t capacity) CW_NOEXCEPT;

/*
 * The kernel that a call of that size uses, for example "copy.avx.nt.ends"; "copy.avx.or-libc" if the C library does it
 * where both operands are aligned to each other, and that kernel otherwise; "libc" if the profile
 * leaves that size to the C library (below 2 KiB the library's own loop does it then, since the
 * jump would cost more than it gains); "inlined" for sizes too small for the profile. The string
 * lives as long as the library is loaded. NULL if operation is not in enum cw_operation.
 * Comparisons ignore the hint.
 */
const char *cw_decision(enum cw_operation operation, enum cw_reuse reuse, size_t n) CW_NOEXCEPT;

/*
 * In place of a call, for a constant size of up to 64 bytes (cw_equal: 1, 2, 4 or 8), the compiler writes out
 * what it does for memcpy: a call takes several times as long. With GCC and Clang where they optimise;
 * CW_NO_INLINE, defined before this header, leaves all calls.
 */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(CW_NO_INLINE)
#define CW_INLINE_ extern __inline __attribute__((__always_inline__, __gnu_inline__))

void *cw_copy_called_(void *dst, const void *src, size_t n) __asm__("cw_copy");
void *cw_fill_called_(void *dst, int byte, size_t n) __asm__("cw_fill");
void *cw_zero_called_(void *dst, size_t n) __asm__("cw_zero");
int cw_equal_called_(const void *a, const void *b, size_t n) __asm__("cw_equal");

CW_INLINE_ void *cw_copy(void *dst, const void *src, size_t n) CW_NOEXCEPT {
    if (__builtin_constant_p(n) && n <= 64)
        return n ? __builtin_memcpy(dst, src, n) : dst;
    return cw_copy_called_(dst, src, n);
}

CW_INLINE_ void *cw_fill(void *dst, int byte, size_t n) CW_NOEXCEPT {
    if (__builtin_constant_p(n) && n <= 64)
        return n ? __builtin_memset(dst, byte, n) : dst;
    return cw_fill_called_(dst, byte, n);
}

CW_INLINE_ void *cw_zero(void *dst, size_t n) CW_NOEXCEPT {
    if (__builtin_constant_p(n) && n <= 64)
        return n ? __builtin_memset(dst, 0, n) : dst;
    return cw_zero_called_(dst, n);
}

CW_INLINE_ int cw_equal(const void *a, const void *b, size_t n) CW_NOEXCEPT {
    if (__builtin_constant_p(n) &&
        (n == 1 || n == sizeof(short) || n == sizeof(int) || n == sizeof(long))) {
        unsigned long of_a = 0, of_b = 0;
        __builtin_memcpy(&of_a, a, n);
        __builtin_memcpy(&of_b, b, n);
        return of_a == of_b;
    }
    return cw_equal_called_(a, b, n);
}

#undef CW_INLINE_
#endif

#ifdef __cplusplus
}
#endif

#endif /* CACHEWISE_H */
