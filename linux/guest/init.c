// SPDX-License-Identifier: GPL-2.0
/*
 * One file, since it is compiled alone, as the only program of the guest.
 *
 * The first process of the guest: exercises the zero lists and checks what they promise.
 *
 * 1. Every page that a program gets is zero: read here, byte by byte, by every workload, and in the
 *    kernel (vm.scrub_verify) for every block that a zero list hands out.
 * 2. The counts add up: scrubbed = hits + wasted + on the lists + in the per-CPU lists.
 * 3. Memory that is short is not kept back: more than there is can be used while swapping.
 *
 * After that, with zero lists in use: the kernel's own mm selftests and the command, where the memory
 * disk has them.
 *
 * "invariants", "selftests" and "cachewise" among its arguments choose of these parts. "count" prints
 * the time per fault only, also of a kernel without the series. With QEMU's -icount shift=0 a
 * nanosecond of the guest's clock is one instruction. "bench" prints what the kernel's own timing of
 * its allocator says (/proc/zeroed_bench): User Mode Linux runs at the CPU's speed. "fork" prints how
 * many pages a fork zeroes and copies.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define MIB (1UL << 20)

static unsigned long checked;	/* pages read by this process and found zero */

/* Whether /proc/cpuinfo has the word. */
static int cpu_is(const char *word)
{
	char line[256];
	int found = 0;
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && fgets(line, sizeof(line), file))
		found |= !!strstr(line, word);
	if (file)
		fclose(file);
	return found;
}

/* QEMU ends where its machine restarts, User Mode Linux where it is switched off. */
static void end(void)
{
	fflush(stdout);
	sync();
	reboot(cpu_is("User Mode Linux") ? RB_POWER_OFF : RB_AUTOBOOT);
}

static void fail(const char *what)
{
	printf("guest: FAILED: %s (%s)\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		end();
	_exit(1);
}

/* The number after `key` in `path`, or -1. */
static long number(const char *path, const char *key)
{
	char line[256];
	long value = -1;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file)) {
		size_t length = strlen(key);

		if (!strncmp(line, key, length) && (line[length] == ' ' || line[length] == ':')) {
			value = atol(line + length + 1);
			break;
		}
	}
	if (file)
		fclose(file);
	return value;
}

static int exists(const char *path)
{
	return !access(path, F_OK);
}

static long event(const char *key)
{
	return number("/proc/vmstat", key);
}

static long zero_pages(void)
{
	return number("/proc/meminfo", "MemZero") / 4;
}

static void set(const char *name, const char *value)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/sys/vm/%s", name);
	file = open(path, O_WRONLY);
	if (file < 0 || write(file, value, strlen(value)) < 0)
		fail(path);
	close(file);
}

static void counters(const char *when)
{
	printf("guest: %-22s scrubbed %7ld hit %7ld miss %7ld wasted %7ld verified %7ld stale %ld failed %ld MemZero %ld\n",
	       when, event("zero_scrubbed"), event("zero_hit"), event("zero_miss"),
	       event("zero_wasted"), event("zero_verified"), event("zero_stale"),
	       event("zero_engine_failed"), zero_pages());
	fflush(stdout);
}

/* Waits until scrubd has nothing left to do. */
static void settle(void)
{
	long before, now = -1;
	int i;

	for (i = 0; i < 600; i++) {
		before = now;
		usleep(300000);
		now = event("zero_scrubbed");
		if (now == before)
			return;
	}
	fail("scrubd does not come to rest");
}

/* Pages on the per-CPU lists, of any kind. */
static long per_cpu_pages(void)
{
	char line[256];
	long sum = 0, count;
	FILE *file = fopen("/proc/zoneinfo", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %ld", &count) == 1)
			sum += count;
	if (file)
		fclose(file);
	return sum;
}

/* With scrubd at rest: at most what the per-CPU lists hold is missing. */
static void conserved(const char *when)
{
	long rest, i;

	for (i = 0; i < 20; i++) {
		rest = event("zero_scrubbed") - event("zero_hit") - event("zero_wasted") - zero_pages();
		if (rest >= 0 && rest <= per_cpu_pages())
			break;
		usleep(200000);
	}
	printf("guest: %-22s %ld zeroed pages in per-CPU lists\n", when, rest);
	if (i == 20)
		fail("the counts do not add up");
	if (event("zero_stale"))
		fail("a zeroed block was not zero");
}

static char *map(size_t size, int huge)
{
	char *at = mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	at = (char *)(((uintptr_t)at + 2 * MIB - 1) & ~(2 * MIB - 1));
	madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return at;
}

static void unmap(char *at, size_t size)
{
	munmap(at, size);
}

/* The memory is read, has to be zero, and is left dirty. */
static void check_zero(char *at, size_t size)
{
	size_t page, word;

	for (page = 0; page < size / PAGE; page++) {
		volatile uint64_t *words = (uint64_t *)(at + page * PAGE);

		/* The first fault is one that writes, so there is no shared zero page. */
		__atomic_fetch_or(&words[page % 512], 0, __ATOMIC_SEQ_CST);
		for (word = 0; word < PAGE / 8; word++)
			if (words[word])
				fail("memory that is not zero");
		for (word = 0; word < PAGE / 8; word += 8)
			words[word] = ~0UL;
		checked++;
	}
}

static void run_mmap(size_t size, int huge, int times)
{
	while (times--) {
		char *at = map(size, huge);

		check_zero(at, size);
		unmap(at, size);
	}
}

static void join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		fail("a child");
}

static void run_fork_exec(int times)
{
	while (times--) {
		pid_t pid = fork();

		if (!pid) {
			execl("/init", "init", "child", NULL);
			_exit(1);
		}
		join(pid);
	}
}

static void run_tmpfs(int times)
{
	static char buffer[PAGE];
	size_t page, byte;

	while (times--) {
		int file = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600);

		if (file < 0 || ftruncate(file, 16 * MIB))
			fail("a file in tmpfs");
		memset(buffer, 0x5a, PAGE);
		for (page = 0; page < 16 * MIB / PAGE; page += 2)
			if (pwrite(file, buffer, 100, page * PAGE) != 100)
				fail("writing to tmpfs");
		for (page = 0; page < 16 * MIB / PAGE; page++) {
			if (pread(file, buffer, PAGE, page * PAGE) != (ssize_t)PAGE)
				fail("reading tmpfs");
			for (byte = page % 2 ? 0 : 100; byte < PAGE; byte++)
				if (buffer[byte])
					fail("a hole in tmpfs that is not zero");
			checked++;
		}
		close(file);
		unlink("/tmp/file");
	}
}

/* Pages of hugetlb's pool, filled while there are zeroed blocks: used, given back, and used again. */
static void run_hugetlb(int pages)
{
	char text[16];
	int turn;

	snprintf(text, sizeof(text), "%d", pages);
	for (turn = 0; turn < 2; turn++) {
		set("nr_hugepages", text);
		pages = number("/proc/meminfo", "HugePages_Total");
		if (pages > 0) {
			size_t size = pages * 2 * MIB;
			int again;

			for (again = 0; again < 2; again++) {
				char *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

				if (at == MAP_FAILED)
					fail("mmap of hugetlb");
				check_zero(at, size);
				munmap(at, size);
			}
		}
		set("nr_hugepages", "0");
	}
	printf("guest: hugetlb: %d pages\n", pages);
}

/* Huge pages of shared memory: holes that faults fill, one that a write fills in part. */
static void run_shared_huge(size_t size)
{
	long huge = event("thp_file_alloc");
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap of shared memory");
	check_zero(at, size);
	munmap(at, size);
	printf("guest: shared memory: %ld huge pages\n", event("thp_file_alloc") - huge);
}

/* How many huge pages can be had, and how fragmented free memory is for them. */
static void huge_pages_left(const char *when)
{
	long free_pages = 0, suitable = 0, count;
	char line[512], *at;
	FILE *file = fopen("/proc/buddyinfo", "r");
	int order, had;

	while (file && fgets(line, sizeof(line), file)) {
		at = strstr(line, "zone");
		at = at ? at + strcspn(at + 4, "0123456789") + 4 : line;
		if (strstr(line, "DMA32"))
			at = strstr(line, "DMA32") + 5;
		else if (strstr(line, "DMA"))
			at = strstr(line, "DMA") + 3;
		for (order = 0; sscanf(at, "%ld", &count) == 1; order++) {
			free_pages += count << order;
			if (order >= 9)
				suitable += count << order;
			at += strspn(at, " ");
			at += strcspn(at, " \n");
		}
	}
	if (file)
		fclose(file);
	set("nr_hugepages", "400");
	had = number("/proc/meminfo", "HugePages_Total");
	set("nr_hugepages", "0");
	printf("guest: %-22s %ld free pages, %ld %% of them in blocks of 2 MiB; %d huge pages had\n", when,
	       free_pages, free_pages ? suitable * 100 / free_pages : 0, had);
	fflush(stdout);
}

static void swap_on(const char *device)
{
	static char header[PAGE];
	uint32_t *info = (uint32_t *)(header + 1024);
	off_t size, at;
	int file = open(device, O_RDWR);

	if (file < 0)
		fail(device);
	size = lseek(file, 0, SEEK_END);
	/* The memory disk takes its pages now, not when there are none. */
	for (at = 0; at < size; at += PAGE)
		if (pwrite(file, header, PAGE, at) != (ssize_t)PAGE)
			fail("filling the memory disk");
	info[0] = 1;
	info[1] = size / PAGE - 1;
	memcpy(header + PAGE - 10, "SWAPSPACE2", 10);
	if (pwrite(file, header, PAGE, 0) != (ssize_t)PAGE || fsync(file) || close(file) ||
	    swapon(device, 0))
		fail("swapon");
}

/* More than what is free, less than what is free and can be swapped. */
static void run_pressure(void)
{
	long available = number("/proc/meminfo", "MemAvailable"), swap = number("/proc/meminfo", "SwapFree");
	/* What lies on per-CPU lists is not counted as available, and is. */
	size_t size = (available + per_cpu_pages() * 4 + swap / 2) * 1024 & ~(PAGE - 1), page;
	char *at = map(size, 0);
	long before = event("pswpout");

	for (page = 0; page < size / PAGE; page++) {
		uint64_t *words = (uint64_t *)(at + page * PAGE);

		if (words[1] || words[511])
			fail("memory that is not zero");
		words[0] = page;
		words[511] = ~page;
	}
	for (page = 0; page < size / PAGE; page++) {
		uint64_t *words = (uint64_t *)(at + page * PAGE);

		if (words[0] != page || words[1] || words[511] != ~page)
			fail("memory that was swapped came back otherwise");
		checked++;
	}
	printf("guest: pressure: %zu MiB used, %ld pages swapped out, %ld pages zeroed ahead left\n",
	       size / MIB, event("pswpout") - before, zero_pages());
	if (event("pswpout") == before)
		fail("nothing was swapped");
	unmap(at, size);
}

/*
 * Free pages are declared bad, most of them inside of zeroed blocks: each leaves the allocator for good.
 */
static void run_poison(int times)
{
	const uint64_t buddy = 1UL << 10; /* KPF_BUDDY */
	const char *path = "/sys/devices/system/memory/hard_offline_page";
	long before = number("/proc/meminfo", "HardwareCorrupted"), bad = 0;
	int flags = open("/proc/kpageflags", O_RDONLY), page = open(path, O_WRONLY);
	uint64_t entry;
	off_t pfn = 4096;

	if (flags < 0 || page < 0)
		fail(path);
	while (times && pread(flags, &entry, sizeof(entry), pfn * sizeof(entry)) == sizeof(entry)) {
		if (entry & buddy) {
			char address[32];

			snprintf(address, sizeof(address), "%#lx", pfn * PAGE);
			bad += write(page, address, strlen(address)) > 0;
			times--;
			run_mmap(8 * PAGE, 0, 4);
		}
		pfn += 1021;
	}
	close(flags);
	close(page);
	run_mmap(16 * MIB, 0, 4);
	printf("guest: %ld free pages declared bad, %ld kB of memory are lost\n", bad,
	       number("/proc/meminfo", "HardwareCorrupted") - before);
	if (!bad || number("/proc/meminfo", "HardwareCorrupted") - before != bad * 4)
		fail("pages that were declared bad");
}

/* Memory goes and comes back, while there are zeroed blocks in it. */
static void run_hotplug(void)
{
	char path[64], state[] = "offline";
	int block, gone = 0, back = 0, file;

	for (block = 0; block < 64; block++) {
		snprintf(path, sizeof(path), "/sys/devices/system/memory/memory%d/state", block);
		file = open(path, O_WRONLY);
		if (file < 0)
			continue;
		/* Blocks that the kernel itself uses do not go. */
		if (write(file, state, strlen(state)) > 0) {
			gone++;
			run_mmap(4 * MIB, 0, 1);
			settle();
			back += write(file, "online", 6) > 0;
		}
		close(file);
	}
	printf("guest: %d blocks of memory went, %d came back\n", gone, back);
	if (!gone || back != gone)
		fail("memory hotplug");
}

/* Everything at once, in several processes. */
static void run_mix(int processes, int times)
{
	pid_t pids[16];
	int i, turn;

	for (i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		srandom(i + 1);
		for (turn = 0; turn < times; turn++) {
			switch (random() % 4) {
			case 0: run_mmap((1 + random() % 64) * PAGE, 0, 8); break;
			case 1: run_mmap(4 * MIB, 1, 2); break;
			case 2: run_mmap(8 * MIB, 0, 1); break;
			case 3: run_fork_exec(2); break;
			}
		}
		_exit(0);
	}
	for (i = 0; i < processes; i++)
		join(pids[i]);
}

/* Nanoseconds of the guest's clock for a fault that writes one byte. */
static double per_fault(size_t size, size_t step, int huge)
{
	struct timespec a, b;
	char *at = map(size, huge);
	size_t i;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < size; i += step)
		((volatile char *)at)[i] = 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	unmap(at, size);
	return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / (size / step);
}

static void count(const char *when)
{
	long hits = event("zero_hit"), misses = event("zero_miss");
	double small = per_fault(32 * MIB, PAGE, 0), huge = per_fault(32 * MIB, 2 * MIB, 1);

	printf("guest: count %-14s %9.0f a fault of 4 KiB, %9.0f of 2 MiB; %ld pages hit, %ld missed\n",
	       when, small, huge, event("zero_hit") - hits, event("zero_miss") - misses);
	fflush(stdout);
}

/* Uses nearly all memory, after which nothing is left that was zeroed ahead. A file, since that takes
 * no faults. */
static void use_up(void)
{
	static char block[MIB];
	long left = number("/proc/meminfo", "MemAvailable") / 1024 * 9 / 10;
	int file = open("/tmp/file", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(block, 0x5a, sizeof(block));
	while (left-- > 0)
		if (write(file, block, sizeof(block)) != sizeof(block))
			fail("using up memory");
	close(file);
	unlink("/tmp/file");
}

static void counting(void)
{
	int i;

	if (!exists("/proc/sys/vm/scrub_start")) {
		for (i = 0; i < 2; i++)
			count("without series");
		return;
	}
	for (i = 0; i < 2; i++)
		count("off");
	set("scrub_start", "0");
	set("scrub_stop", "0");
	settle();
	for (i = 0; i < 2; i++) {
		count("on, hitting");
		settle();
	}
	/* scrubd no more. */
	set("scrub_start", "99");
	use_up();
	for (i = 0; i < 2; i++)
		count("on, missing");
}

/* Prints a file, each line with what it belongs to. */
static void print_file(const char *path, const char *when)
{
	char line[256];
	FILE *file = fopen(path, "r");

	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file))
		printf("guest: %-8s %s", when, line);
	fclose(file);
	fflush(stdout);
}

/* Nanoseconds for a block, by order: nothing zeroed ahead, all of it, and nothing left of it. */
static void benching(void)
{
	int i;

	/* The host's pages are there afterwards: its faults are none of the guest's. */
	use_up();
	for (i = 0; i < 3; i++)
		print_file("/proc/zeroed_bench", "off");
	if (!exists("/proc/sys/vm/scrub_start"))
		return;
	set("scrub_stop", "0");
	set("scrub_start", "0");
	for (i = 0; i < 3; i++) {
		settle();
		print_file("/proc/zeroed_bench", "hitting");
	}
	set("scrub_start", "99");
	use_up();
	for (i = 0; i < 3; i++)
		print_file("/proc/zeroed_bench", "missing");
}

/* Pages that a fork zeroes and copies, with a buffer that parent and child write afterwards. */
static void fork_footprint(size_t pages, int times)
{
	char *at = map(2 * MIB, 0);
	long cleared, copied;
	size_t page;
	int i;

	for (page = 0; page < pages; page++)
		at[page * PAGE] = 1;
	cleared = event("pgcleared");
	copied = event("pgcopied");
	if (cleared < 0)
		fail("the kernel does not count pages");
	for (i = 0; i < times; i++) {
		char byte = 0;
		int ends[2];
		pid_t pid;

		if (pipe(ends))
			fail("pipe");
		pid = fork();
		if (!pid) {
			/* Until the parent has written: what nobody shares is not copied. */
			if (read(ends[0], &byte, 1) != 1)
				_exit(1);
			_exit(0);
		}
		for (page = 0; page < pages; page++)
			at[page * PAGE]++;
		if (write(ends[1], &byte, 1) != 1)
			fail("pipe");
		close(ends[0]);
		close(ends[1]);
		join(pid);
	}
	printf("guest: a fork and a buffer of %zu pages: %.2f pages zeroed, %.2f copied\n", pages,
	       (double)(event("pgcleared") - cleared) / times, (double)(event("pgcopied") - copied) / times);
	fflush(stdout);
	unmap(at, 2 * MIB);
}

/* Memory that was used is free again, and scrubd leaves it alone. */
static void rests(const char *what)
{
	long before = event("zero_scrubbed");

	run_mmap(32 * MIB, 0, 2);
	sleep(1);
	if (event("zero_scrubbed") != before)
		fail(what);
}

static void switch_on(void)
{
	set("scrub_verify", "1");
	set("scrub_stop", "0");
	set("scrub_start", "0");
	settle();
}

static void testing(void)
{
	static const char *const engines[] = { "cpu", "nt", "test" };
	unsigned int i;

	swap_on("/dev/ram0");
	counters("off");
	run_fork_exec(200);
	if (exists("/sys/kernel/mm/hugepages")) {
		run_mix(6, 12);
		huge_pages_left("after a mix, lists off");
	}
	counters("off, fork and exec");
	if (event("zero_scrubbed") || event("zero_hit"))
		fail("off, and still counting");

	switch_on();
	counters("scrubbed");
	conserved("scrubbed");
	run_fork_exec(400);
	counters("fork and exec");
	settle();
	conserved("fork and exec");
	run_mmap(48 * MIB, 0, 6);
	counters("mmap");
	settle();
	conserved("mmap");
	run_tmpfs(6);
	counters("tmpfs");
	if (exists("/sys/kernel/mm/transparent_hugepage")) {
		long huge = event("thp_fault_alloc");

		run_mmap(64 * MIB, 1, 6);
		counters("huge pages");
		if (event("thp_fault_alloc") == huge)
			fail("no huge page was used");
	}
	settle();
	conserved("huge pages");
	if (exists("/sys/kernel/mm/hugepages")) {
		long hits = event("zero_hit");

		run_hugetlb(16);
		if (event("zero_hit") == hits)
			fail("hugetlb took nothing that was zero");
	}
	if (exists("/sys/kernel/mm/transparent_hugepage/shmem_enabled")) {
		int file = open("/sys/kernel/mm/transparent_hugepage/shmem_enabled", O_WRONLY);
		long hits = event("zero_hit");

		if (write(file, "always", 6) < 0)
			fail("shmem_enabled");
		settle();
		run_shared_huge(32 * MIB);
		if (event("zero_hit") - hits < 512)
			fail("shared memory took nothing that was zero");
		if (write(file, "never", 5) < 0)
			fail("shmem_enabled");
		close(file);
	}
	settle();
	counters("hugetlb, shared memory");
	conserved("hugetlb, shared memory");
	run_pressure();
	counters("pressure and swap");
	settle();
	conserved("pressure and swap");
	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		int file = open("/proc/sys/vm/scrub_engine", O_WRONLY);

		/* "nt" is x86's. */
		if (write(file, engines[i], strlen(engines[i])) > 0) {
			run_mix(6, 12);
			/* scrubd had no CPU meanwhile: it is of the idle class. */
			settle();
			counters(engines[i]);
		}
		close(file);
	}
	if (!event("zero_engine_failed"))
		fail("the engine that fails did not");
	set("scrub_engine", "cpu");
	if (exists("/sys/devices/system/memory")) {
		run_hotplug();
		run_poison(20);
		settle();
		counters("hotplug, bad memory");
		conserved("hotplug, bad memory");
	}
	if (exists("/sys/kernel/mm/hugepages"))
		huge_pages_left("after a mix, lists on");
	/* Compaction moves pages between lists while everything goes on. */
	if (exists("/proc/sys/vm/compact_memory"))
		set("compact_memory", "1");
	run_mix(6, 12);
	settle();
	counters("compaction");
	conserved("compaction");

	/* A load above the limit keeps scrubd off; switched off, nothing is zeroed any more. */
	set("scrub_load", "0");
	rests("scrubd works under load");
	set("scrub_load", "999");
	set("scrub_start", "99");
	rests("scrubd works though it is off");
	counters("off again");
}

/* Runs a program in `folder` and returns what waitpid() says; what it prints is in /tmp/out. */
static int run_program(const char *folder, char **words, int seconds)
{
	int status, waited;
	pid_t pid = fork();

	if (!pid) {
		int out = open("/tmp/out", O_WRONLY | O_CREAT | O_TRUNC, 0600);

		setsid();
		dup2(out, 1);
		dup2(out, 2);
		setenv("HOME", "/tmp", 1);
		if (!chdir(folder))
			execv(words[0], words);
		_exit(127);
	}
	for (waited = 0; waited < seconds * 10; waited++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(100000);
	}
	kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* Prints what a program printed, from the line `from` on where it is not negative. */
static void printed(long from)
{
	char line[512];
	long number = 0;
	FILE *file = fopen("/tmp/out", "r");

	while (file && fgets(line, sizeof(line), file))
		if (number++ >= from)
			printf("guest: | %s%s", line, strchr(line, '\n') ? "" : "\n");
	if (file)
		fclose(file);
}

/* Lines of the last program that begin with `start`, and in `all` those of any kind. */
static long lines(const char *start, long *all)
{
	char line[512];
	long found = 0, number = 0;
	FILE *file = fopen("/tmp/out", "r");

	while (file && fgets(line, sizeof(line), file)) {
		number++;
		found += !strncmp(line, start, strlen(start));
	}
	if (file)
		fclose(file);
	if (all)
		*all = number;
	return found;
}

/* How many huge pages a selftest wants: one of them exactly one. */
static const char *huge_pages(const char *test)
{
	if (strstr(test, "_madv"))
		return "1";
	return !strncmp(test, "huge", 4) || !strncmp(test, "uffd", 4) || strstr(test, "hugetlb") ? "24" : "0";
}

/* The kernel's own: each passes, or says by itself that it has nothing to test here. They run on a
 * kernel without the series too, to tell whose fault a failure is. */
static void selftests(void)
{
	int with_series = exists("/proc/sys/vm/scrub_start");
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	long passed = 0, skipped = 0, failed = 0, cases = 0, all;
	const char *result;
	char line[128];
	FILE *list = fopen("/selftests/list", "r");

	if (!list)
		fail("/selftests/list");
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	/* One of them reserves gigabytes that it does not use. */
	set("overcommit_memory", "1");
	if (with_series)
		switch_on();
	while (fgets(line, sizeof(line), list)) {
		char *words[8] = { NULL }, *word = strtok(line, " \n");
		int count = 0, status;

		if (!word || *word == '#')
			continue;
		while (word && count < 7) {
			words[count++] = word;
			word = strtok(NULL, " \n");
		}
		if (exists("/proc/sys/vm/nr_hugepages"))
			set("nr_hugepages", huge_pages(words[0]));
		status = run_program("/selftests", words, 180);
		cases += lines("ok ", &all);
		if ((WIFEXITED(status) && WEXITSTATUS(status) == 4) || lines("1..0", NULL)) {
			skipped++;
			result = "skipped";
		} else if (!status) {
			passed++;
			result = "passed";
		} else {
			failed++;
			result = "FAILED";
		}
		printf("guest: selftest %-28s %s, %ld cases ok, %ld not\n", words[0], result,
		       lines("ok ", NULL), lines("not ok ", NULL));
		if (status)
			printed(all - 12);
		fflush(stdout);
	}
	fclose(list);
	if (exists("/proc/sys/vm/nr_hugepages"))
		set("nr_hugepages", "0");
	if (with_series) {
		settle();
		counters("selftests");
		conserved("selftests");
	}
	printf("guest: selftests: %ld passed, %ld skipped, %ld failed; %ld cases ok\n", passed, skipped, failed, cases);
	if (failed)
		fail("selftests");
}

/* On an emulated CPU the command times nothing: it checks the bytes of what it would time. */
static char *how(void)
{
	return cpu_is("QEMU") ? "--verify-only" : "--quick";
}

/* The command itself, which checks its bytes; what it times means nothing here. */
static void cachewise(void)
{
	char *runs[][8] = {
		{ "/cachewise", "run", "page-fault", how() },
		{ "/cachewise", "run", "page-copy", how() },
	};
	size_t i;

	switch_on();
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		long hits = event("zero_hit"), misses = event("zero_miss"), all;
		int status = run_program("/tmp", runs[i], 300);

		lines("", &all);
		printf("guest: cachewise run %s: status %d, %ld lines; %ld pages hit, %ld missed\n", runs[i][2],
		       status, all, event("zero_hit") - hits, event("zero_miss") - misses);
		printed(status ? all - 12 : 0);
		if (status)
			fail("cachewise");
	}
	settle();
	counters("cachewise");
	conserved("cachewise");
}

static int named(int argc, char **argv, const char *word)
{
	int i;

	for (i = 1; i < argc; i++)
		if (!strcmp(argv[i], word))
			return 1;
	return 0;
}

/* All parts but those that only print figures run unless some are named. */
static int part(int argc, char **argv, const char *name)
{
	static const char *const words[] = { "count", "bench", "fork", "invariants", "selftests", "cachewise" };
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (named(argc, argv, words[i]))
			return named(argc, argv, name);
	return strcmp(name, "count") && strcmp(name, "bench") && strcmp(name, "fork");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "child")) {
		run_mmap(32 * PAGE, 0, 1);
		return 0;
	}
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/tmp", 0755);
	mkdir("/dev", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sys", "/sys", "sysfs", 0, NULL) ||
	    mount("tmp", "/tmp", "tmpfs", 0, "size=100%"))
		fail("mount");
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (part(argc, argv, "count"))
		counting();
	if (part(argc, argv, "bench"))
		benching();
	if (part(argc, argv, "fork")) {
		fork_footprint(0, 100);
		fork_footprint(64, 100);
	}
	if (part(argc, argv, "invariants"))
		testing();
	if (part(argc, argv, "selftests") && exists("/selftests"))
		selftests();
	if (part(argc, argv, "cachewise") && exists("/cachewise"))
		cachewise();
	if (event("zero_stale") > 0)
		fail("a zeroed block was not zero");
	printf("guest: ok, %lu pages read by the first process, %ld verified by the kernel, 0 stale\n",
	       checked, event("zero_verified"));
	end();
	return 0;
}
