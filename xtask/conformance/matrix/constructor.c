/* A library whose constructor calls the function that matrix.c is asked for. */
#define _GNU_SOURCE
#include <dlfcn.h>

void matrix_check (void);

__attribute__ ((constructor)) static void
constructor (void)
{
  matrix_check ();
}

void *
constructor_finds (const char *name)
{
  return dlsym (RTLD_DEFAULT, name);
}
