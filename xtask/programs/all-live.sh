# Nothing to gain: an index whose every block stays in use.
set -eu
. "$COMMON"
case $1 in
prepare)
    need cc
    cat >live.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct entry {
    struct entry *left, *right;
    unsigned long key, words[6];
};
int main(int count, char **words)
{
    unsigned long state = 1, sum = 0;
    struct entry *root = NULL;
    for (int i = 0; i < (count > 1 ? atoi(words[1]) : 10); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct entry *made = calloc(1, sizeof *made), **at = &root;
        made->key = state >> 20;
        while (*at)
            at = made->key < (*at)->key ? &(*at)->left : &(*at)->right;
        *at = made;
        sum ^= made->key;
    }
    usleep(300000);
    printf("%lu\n", sum);
    return 0;
}
C
    cc -O2 -o live live.c
    ;;
run) "$PREPARED/live" "$(part 450000)" ;;
esac
