/* What jemalloc's integration tests need, for any allocator behind C's own functions. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JEMALLOC_DIAGNOSTIC_DISABLE_SPURIOUS
#define JEMALLOC_DIAGNOSTIC_PUSH
#define JEMALLOC_DIAGNOSTIC_POP
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN
#define SIZE_T_MAX SIZE_MAX
#define ZU(z) ((size_t) z)
#define ZI(z) ((ssize_t) z)
#define LG_SIZEOF_PTR 3
#define FMTx64 PRIx64
#define TEST_MALLOC_SIZE(p) malloc_usable_size (p)

#define BUFERROR_BUF 64
#define buferror(error, text, size) snprintf (text, size, "%s", strerror (error))

static unsigned failures, checks;

#define get_errno() errno
#define test_fail(...) (failures++, fprintf (stderr, __VA_ARGS__), fputc ('\n', stderr))
#define expect(holds, ...) do { checks++; if (!(holds)) test_fail (__VA_ARGS__); } while (0)
#define expect_false(x, ...) expect (!(x), __VA_ARGS__)
#define expect_d_eq(a, b, ...) expect ((a) == (b), __VA_ARGS__)
#define expect_d_ne(a, b, ...) expect ((a) != (b), __VA_ARGS__)
#define expect_ptr_null(p, ...) expect ((p) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(p, ...) expect ((p) != NULL, __VA_ARGS__)
#define TEST_BEGIN(name) static void name (void) {
#define TEST_END }

typedef void test_t (void);

static int
run_tests (test_t **tests)
{
  for (; *tests != NULL; tests++)
    (*tests) ();
  printf ("%u checks, %u failed\n", checks, failures);
  return failures != 0;
}

#define test(...) run_tests ((test_t *[]){ __VA_ARGS__, NULL })
#define test_no_reentrancy test

/* jemalloc's own controls: freed memory back to the system, and the largest size there is. */
static inline int
mallctl (const char *name, void *old, size_t *size, void *new, size_t new_size)
{
  (void) size, (void) new, (void) new_size;
  if (strcmp (name, "arenas.nlextents") == 0)
    *(unsigned *) old = 1;
  else
    malloc_trim (0);
  return 0;
}

static inline int
mallctlnametomib (const char *name, size_t *mib, size_t *length)
{
  (void) name, (void) mib, (void) length;
  return 0;
}

static inline int
mallctlbymib (const size_t *mib, size_t length, void *old, size_t *size, void *new, size_t new_size)
{
  (void) mib, (void) length, (void) size, (void) new, (void) new_size;
  *(size_t *) old = PTRDIFF_MAX;
  return 0;
}
