/* The state that `main` finds: errno is 0, whatever the library has met before. */
#include <errno.h>
#include <stdio.h>

int main(void)
{
    int found = errno;
    printf("%d\n", found);
    return found != 0;
}
