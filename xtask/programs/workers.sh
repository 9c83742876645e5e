# A web server with workers that are processes: each answers requests with a page built from parts, keeps a session now
# and then, and waits for the next burst.
set -eu
. "$COMMON"
case $1 in
prepare)
    need cc
    cat >workers.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
enum { WORKERS = 6, SESSIONS = 400 };
static unsigned answer(unsigned *random, char **sessions)
{
    enum { PARTS = 60 };
    char *parts[PARTS];
    size_t sizes[PARTS], all = 0;
    for (int i = 0; i < PARTS; i++) {
        sizes[i] = 200 + rand_r(random) % 30000;
        parts[i] = malloc(sizes[i]);
        memset(parts[i], 'a' + i % 26, sizes[i]);
        all += sizes[i];
        if (i == PARTS / 2) {
            unsigned at = rand_r(random) % SESSIONS;
            free(sessions[at]);
            sessions[at] = calloc(1, 300 + rand_r(random) % 500);
        }
    }
    char *page = malloc(all), *end = page;
    for (int i = 0; i < PARTS; i++) {
        memcpy(end, parts[i], sizes[i]);
        end += sizes[i];
        free(parts[i]);
    }
    unsigned sum = (unsigned)all + (unsigned char)page[all / 2];
    free(page);
    return sum;
}
int main(int count, char **words)
{
    int requests = count > 1 ? atoi(words[1]) : 10, pairs[WORKERS][2];
    for (int w = 0; w < WORKERS; w++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[w]))
            return 1;
        if (fork() == 0) {
            unsigned random = 77u + (unsigned)w, request, result;
            char *sessions[SESSIONS] = {0};
            for (int i = 0; i <= w; i++)
                close(pairs[i][1]);
            while (read(pairs[w][0], &request, sizeof request) == sizeof request) {
                result = answer(&random, sessions);
                if (write(pairs[w][0], &result, sizeof result) != sizeof result)
                    _exit(1);
            }
            _exit(0);
        }
        close(pairs[w][0]);
    }
    unsigned long sum = 0;
    for (int i = 0; i < requests; i++)
        for (int w = 0; w < WORKERS; w++) {
            unsigned request = (unsigned)i, result = 0;
            if (write(pairs[w][1], &request, sizeof request) < 0 || read(pairs[w][1], &result, sizeof result) < 0)
                return 1;
            sum += result;
        }
    usleep(500000);
    for (int w = 0; w < WORKERS; w++)
        close(pairs[w][1]);
    while (wait(NULL) > 0)
        ;
    printf("%lu\n", sum);
    return 0;
}
C
    cc -O2 -o workers workers.c
    ;;
run) "$PREPARED/workers" "$(part 450)" ;;
esac
