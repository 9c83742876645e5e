# A build of many short processes: each reads a little, allocates a little, and ends.
set -eu
. "$COMMON"
case $1 in
prepare)
    need cc
    cat >step.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words)
{
    unsigned long sum = 0;
    for (int i = 0; i < 400; i++) {
        char *line = malloc(40 + (unsigned)i % 600);
        sum += (unsigned long)snprintf(line, 40, "%s %d", count > 1 ? words[1] : "", i);
        free(line);
    }
    printf("%lu\n", sum);
    return 0;
}
C
    cc -O2 -o step step.c
    ;;
run)
    count=$(part 900)
    i=0
    while [ $i -lt $count ]; do
        "$PREPARED/step" $i
        i=$((i + 1))
    done | cksum
    ;;
esac
