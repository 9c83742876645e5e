/* A program without any library, whose first instructions copy, fill and compare: ends with 42 where all is right. */
typedef unsigned long size_t;
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
int bcmp(const void *, const void *, size_t);

static unsigned char from[3000], to[3000];

static int right(void) {
    for (size_t n = 0; n < 1000; n++) {
        for (size_t i = 0; i < n; i++) from[i] = (unsigned char)(i * 7 + n);
        if (memcpy(to + 1, from, n) != to + 1 || bcmp(to + 1, from, n) || memcmp(from, to + 1, n)) return 0;
        if (memmove(to, to + 1, n) != to) return 0;
        for (size_t i = 0; i < n; i++)
            if (to[i] != from[i]) return 0;
        if (memset(to, 5, n) != to) return 0;
        for (size_t i = 0; i < n; i++)
            if (to[i] != 5) return 0;
        if (n == 0) continue;
        memcpy(from, to, n), from[n - 1] = 6;
        if (memcmp(to, from, n) >= 0 || memcmp(from, to, n) <= 0 || !bcmp(to, from, n)) return 0;
    }
    return 1;
}

__attribute__((noreturn, force_align_arg_pointer)) void _start(void) {
    long status = right() ? 42 : 1;
    for (;;) __asm__ volatile("syscall" ::"a"(231), "D"(status) : "rcx", "r11", "memory");
}
