/* As jemalloc: what its `operator new` takes comes from whoever has `malloc`, and what is freed with its
 * size goes straight to its own. Built with LIBRARY it is the allocator, otherwise a program of it. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *taken(size_t length);
void sdallocx(void *block, size_t length, int flags);

#ifdef LIBRARY
void __libc_free(void *block);

void *taken(size_t length)
{
    return malloc(length);
}

void sdallocx(void *block, size_t length, int flags)
{
    (void)length;
    (void)flags;
    __libc_free(block);
}
#else
int main(void)
{
    for (size_t length = 1000; length < 10000000; length *= 3) {
        unsigned char *block = taken(length);
        if (block == NULL)
            return 1;
        memset(block, 5, length);
        sdallocx(block, length, 0);
    }
    puts("freed");
    return 0;
}
#endif
