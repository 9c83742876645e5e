/* A program that says of itself that it runs with more privilege than its caller: its getauxval
 * is found before libc's. With DISGUISE undefined it is an ordinary program. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#ifdef DISGUISE
unsigned long getauxval(unsigned long type) { return type == AT_SECURE; }
#endif

static char from[1 << 20], to[1 << 20];
static volatile size_t length = sizeof from;

int main(void) {
    from[length - 1] = 'x';
    memcpy(to, from, length);
    puts(to[length - 1] == 'x' ? "copied" : "not copied");
    return to[length - 1] != 'x';
}
