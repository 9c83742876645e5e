/*
 * A daemon that closed stderr and opened its data in its place: what is wrong with a profile is found at
 * the first large call, and is not written there.
 */
#include <cachewise.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

int main(int count, char **words)
{
    char name[] = "dataXXXXXX", *from = calloc(1, SIZE), *to = malloc(SIZE);
    off_t length;
    int file;
    if (from == NULL || to == NULL)
        return 2;
    if (count > 1) {
        file = mkstemp(name);
        if (file < 0 || unlink(name) != 0 || dup2(file, 2) != 2)
            return 3;
    }
    cw_copy(to, from, SIZE);
    if (memcmp(to, from, SIZE) != 0)
        return 4;
    length = count > 1 ? lseek(2, 0, SEEK_END) : 0;
    printf("%s, %ld\n", words[count - 1][0] == 'd' ? "data" : "stderr", (long)length);
    free(from);
    free(to);
    return 0;
}
