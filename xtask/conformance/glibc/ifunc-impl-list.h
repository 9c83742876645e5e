/* The list of glibc's own variants of a function, which it does not export: none. What is left for
   the string tests is the exported function, which is the preloaded one, and their plain C ones. */
#include <stdbool.h>
#include <stddef.h>

struct libc_ifunc_impl
{
  const char *name;
  void (*fn) (void);
  bool usable;
};

static inline size_t
__libc_ifunc_impl_list (const char *name, struct libc_ifunc_impl *array, size_t max)
{
  (void) name, (void) array, (void) max;
  return 0;
}
