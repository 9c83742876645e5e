/* The main thread leaves by pthread_exit, and another one ends later: so does the process, with a pool's thread
 * in it, and where there is no /proc too. */
#include <cachewise_pool.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *later(void *pool)
{
    sleep(1);
    cw_pool_free(pool, cw_pool_zalloc(pool, 3), 3);
    return NULL;
}

int main(void)
{
    cw_pool *pool;
    pthread_t thread;
    alarm(60);
    if (cw_pool_create(NULL, &pool) != CW_OK || pthread_create(&thread, NULL, later, pool) != 0)
        return 1;
    pthread_exit(NULL);
}
