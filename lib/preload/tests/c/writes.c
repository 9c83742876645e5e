/* Ends with 9; with an argument it first writes where nobody reads, and exceeds its limit. */
#include <signal.h>
#include <unistd.h>

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) (void)!write(2, "", 1), raise(SIGXFSZ);
    return 9;
}
