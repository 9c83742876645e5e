/* A program's own fork handlers use what the pool serves: registered by a constructor, before the first
 * large request and after it; while other threads are at it; and waiting for a thread that allocates.
 * Parent, child and a child's child go on allocating. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            static const char line[] = #what "\n"; \
            (void)!write(2, line, sizeof line - 1); \
            _exit(1); \
        } \
    } while (0)

static void *held[3];
static volatile int stop, calls;

static void use(size_t length)
{
    unsigned char *block = calloc(1, length);
    CHECK(block != NULL && block[0] == 0 && block[length - 1] == 0);
    memset(block, 5, length);
    block = realloc(block, length * 2);
    CHECK(block != NULL && block[0] == 5 && block[length - 1] == 5);
    free(block);
}

#define HANDLER(name, at) \
    static void name(void) \
    { \
        free(held[at]); \
        held[at] = malloc(200000 + 50000 * at); \
        CHECK(held[at] != NULL); \
        memset(held[at], 3, 200000); \
        use(150000); \
        calls++; \
    }
HANDLER(before, 0)
HANDLER(in_parent, 1)
HANDLER(in_child, 2)

/* A handler that waits for another thread, which allocates. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void take_lock(void) { pthread_mutex_lock(&lock); }
static void give_lock(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void early(void)
{
    CHECK(pthread_atfork(before, in_parent, in_child) == 0);
}

static void *churn(void *unused)
{
    (void)unused;
    while (!stop) {
        pthread_mutex_lock(&lock);
        use(140000);
        pthread_mutex_unlock(&lock);
        use(300000);
    }
    return NULL;
}

static void on_alarm(int signal)
{
    (void)signal;
}

int main(void)
{
    pthread_t threads[3];
    struct sigaction action;
    struct itimerval often = {{0, 700}, {0, 700}};
    int status;
    alarm(60);
    CHECK(pthread_atfork(take_lock, give_lock, give_lock) == 0);
    for (int round = 0; round < 40; round++) {
        pid_t child;
        if (round == 10) {
            use(1 << 20);
            CHECK(pthread_atfork(before, in_parent, in_child) == 0);
        }
        if (round == 20) {
            memset(&action, 0, sizeof action);
            action.sa_handler = on_alarm;
            action.sa_flags = SA_RESTART;
            CHECK(sigaction(SIGVTALRM, &action, NULL) == 0);
            CHECK(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0);
            for (int at = 0; at < 3; at++)
                CHECK(pthread_create(&threads[at], NULL, churn, NULL) == 0);
        }
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            pid_t grandchild;
            use(400000);
            grandchild = fork();
            if (grandchild == 0) {
                use(500000);
                _exit(0);
            }
            CHECK(waitpid(grandchild, &status, 0) == grandchild && status == 0);
            use(600000);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        use(250000);
    }
    stop = 1;
    for (int at = 0; at < 3; at++)
        pthread_join(threads[at], NULL);
    CHECK(calls >= 80);
    puts("handlers hold");
    return 0;
}
