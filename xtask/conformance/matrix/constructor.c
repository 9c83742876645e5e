/* A library whose constructor calls the function that matrix.c is asked for. */
void matrix_check (void);

__attribute__ ((constructor)) static void
constructor (void)
{
  matrix_check ();
}
