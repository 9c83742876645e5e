/* Known calls, and how the process ends: counted [exit|_exit|kill|closes FILE] [DIRECTORY]. A child compares. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char from[1 << 20], to[1 << 20];
static volatile size_t small = 10, large = 100000, repeat = 7;
static const char *other;

/* As a daemon does, in whose stderr's place is another file by then; and as all of coreutils do. */
static void last(void) {
    fclose(stderr);
    if (other) open(other, O_WRONLY | O_CREAT, 0600);
}

int main(int count, char **arguments) {
    const char *end = count > 1 ? arguments[1] : "exit";
    for (size_t i = 0; i < repeat; i++) memmove(to, from, small), memcpy(to, from, large);
    memset(to, 0, large);
    memset(to, 1, small);
    free(realloc(calloc(3, large), small));
    if (fork() == 0) {
        if (memcmp(from, from + 1, large)) abort();
        exit(0);
    }
    int status;
    wait(&status);
    if (!strcmp(end, "kill")) raise(SIGKILL);
    if (!strcmp(end, "closes")) other = count > 2 ? arguments[2] : 0, atexit(last);
    else if (count > 2 && chdir(arguments[2])) return 1;
    if (!strcmp(end, "_exit")) _exit(status);
    return status;
}
