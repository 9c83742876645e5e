/* Definitions that glibc's configure would have written, as far as its string tests read it. */
#define HAVE_CC_INHIBIT_LOOP_TO_LIBCALL 1
