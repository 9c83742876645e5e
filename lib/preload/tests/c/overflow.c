/* Calls one of the checked forms, with room for 4 bytes more than it is asked for, or for fewer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__memcpy_chk(void *, const void *, size_t, size_t);
void *__memmove_chk(void *, const void *, size_t, size_t);
void *__mempcpy_chk(void *, const void *, size_t, size_t);
void *__memset_chk(void *, int, size_t, size_t);
void __explicit_bzero_chk(void *, size_t, size_t);
/* glibc's from 2.43 on. */
__attribute__((weak)) void *__memset_explicit_chk(void *, int, size_t, size_t);

static char from[100000], to[100000];

int main(int count, char **arguments) {
    size_t n, room;
    if (count != 4) {
        return 2;
    }
    n = (size_t)atol(arguments[2]);
    room = (size_t)atol(arguments[3]);
    from[0] = from[n - 1] = 'x';
    to[0] = to[n - 1] = 'y';
    switch (arguments[1][0]) {
    case 'c': if (__memcpy_chk(to, from, n, room) != to) return 3; break;
    case 'm': if (__memmove_chk(to, from, n, room) != to) return 3; break;
    case 'p': if (__mempcpy_chk(to, from, n, room) != to + n) return 3; break;
    case 's': if (__memset_chk(to, 'x', n, room) != to) return 3; break;
    case 'z':
        if (__memset_chk(to, 0, n, room) != to) return 3;
        return to[0] != 0 || to[n - 1] != 0;
    case 'b': __explicit_bzero_chk(to, n, room); return to[0] != 0 || to[n - 1] != 0;
    case 'e':
        if ((__memset_explicit_chk ? __memset_explicit_chk : __memset_chk)(to, 'x', n, room) != to) return 3;
        break;
    default: return 2;
    }
    return to[0] != 'x' || to[n - 1] != 'x';
}
