/* A secret on the stack of a function that has returned: gone after explicit_bzero, although
 * nobody reads it. Compiled with optimisation, and with builtins. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

enum { LENGTH = 96 };
static const unsigned char *volatile place;

__attribute__((noinline)) static void use(volatile unsigned char *secret) {
    for (int i = 0; i < LENGTH; i++) {
        secret[i] = (unsigned char)(0xC0 + i % 16);
    }
}

__attribute__((noinline)) static void keep_secret(int clear) {
    unsigned char secret[LENGTH];
    place = secret;
    use(secret);
    if (clear) {
        explicit_bzero(secret, LENGTH);
    }
}

/* Reads what is left, before any other call uses the stack. */
__attribute__((noinline, optimize("no-tree-dse"))) static int left(void) {
    const volatile unsigned char *at = place;
    int found = 0;
    for (int i = 0; i < LENGTH; i++) {
        found += at[i] == (unsigned char)(0xC0 + i % 16);
    }
    return found;
}

int main(void) {
    keep_secret(0);
    int without = left();
    keep_secret(1);
    int with = left();
    printf("%s\n", without > LENGTH / 2 && with == 0 ? "cleared" : "not shown");
    return !(without > LENGTH / 2 && with == 0);
}
