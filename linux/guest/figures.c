// SPDX-License-Identifier: GPL-2.0
/* What prints figures: instructions, times, a fork's pages, and fragmentation. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "guest.h"

/* MiB that use_up() leaves: the kernel's own. */
#define RESERVE 24

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
	long skipped = event("prezero_skipped");
	double small = per_fault(32 * MIB, PAGE, 0), huge = per_fault(32 * MIB, 2 * MIB, 1);

	printf("guest: count %-14s %9.0f a fault of 4 KiB, %9.0f of 2 MiB; %ld MiB of memory, %ld pages not zeroed again\n",
	       when, small, huge, number("/proc/meminfo", "MemTotal") / 1024, event("prezero_skipped") - skipped);
	fflush(stdout);
}

/* Uses nearly all memory. A file, since that takes no faults. */
static void use_up(void)
{
	static char block[MIB];
	long left = number("/proc/meminfo", "MemAvailable") / 1024 - RESERVE;
	int file = open("/tmp/file", O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(block, 0x5a, sizeof(block));
	while (left-- > 0)
		if (write(file, block, sizeof(block)) != sizeof(block))
			fail("using up memory");
	close(file);
	unlink("/tmp/file");
}

/* Prints a file, each line with what it belongs to, where that is named, and returns how many lines it has. */
long print_file(const char *path, const char *when)
{
	char line[256];
	long lines = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		fail(path);
	for (; fgets(line, sizeof(line), file); lines++)
		if (when)
			printf("guest: %-8s %s", when, line);
	fclose(file);
	fflush(stdout);
	return lines;
}

/* Switches prezeroing off and uses memory up, until nothing is left that was zeroed ahead: blocks that stay free for
 * the kernel's needs are the first that the bench takes. One that is reserved for atomic requests keeps its mark. */
static void use_up_zeroed(void)
{
	set("prezero", "0");
	use_up();
	print_file("/proc/zeroed_bench", NULL);
}

void counting(void)
{
	int i;

	if (exists("/proc/vector_bench"))
		print_file("/proc/vector_bench", "vectors");
	if (!exists("/proc/sys/vm/prezero")) {
		for (i = 0; i < 2; i++)
			count("without series");
		return;
	}
	for (i = 0; i < 2; i++)
		count("off");
	switch_on();
	for (i = 0; i < 2; i++) {
		count("on, hitting");
		settle();
	}
	use_up_zeroed();
	for (i = 0; i < 2; i++)
		count("on, missing");
}

/* Nanoseconds for a block, by order: nothing zeroed ahead, all of it, and nothing left of it. */
void benching(void)
{
	long skipped;
	int i;

	/* The host's pages are there afterwards: its faults are none of the guest's. */
	use_up();
	for (i = 0; i < 3; i++)
		print_file("/proc/zeroed_bench", "off");
	if (!exists("/proc/sys/vm/prezero"))
		return;
	set("prezero", "1");
	for (i = 0; i < 3; i++) {
		settle();
		print_file("/proc/zeroed_bench", "hitting");
	}
	use_up_zeroed();
	skipped = event("prezero_skipped");
	for (i = 0; i < 3; i++)
		print_file("/proc/zeroed_bench", "missing");
	if (event("prezero_skipped") != skipped)
		fail("a block was there that was zeroed ahead");
}

/* Pages that a fork zeroes and copies, with a buffer that parent and child write afterwards. */
void fork_footprint(size_t pages, int times)
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

#define ORDERS 11

/* Free pages, by the order of the block that they are in. */
static long free_pages(long pages[ORDERS])
{
	char line[512];
	long sum = 0, count;
	FILE *file = fopen("/proc/buddyinfo", "r");
	int order, at, next;

	memset(pages, 0, ORDERS * sizeof(*pages));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %*d, zone %*s%n", &at) < 0)
			continue;
		for (order = 0; order < ORDERS && sscanf(line + at, "%ld%n", &count, &next) == 1; order++) {
			pages[order] += count << order;
			sum += count << order;
			at += next;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

/* The part of free memory that no request of this order can use ("unusable free space index"). */
static double unusable(unsigned int order)
{
	long pages[ORDERS], sum = free_pages(pages), small = 0;
	unsigned int i;

	for (i = 0; i < order; i++)
		small += pages[i];
	return sum ? (double)small / sum : 0;
}

/* Transparent huge pages that faults get without compaction, of those that would fit. */
static void huge_faults(void)
{
	const char *folder = "/sys/kernel/mm/transparent_hugepage";
	size_t huge = number("/proc/meminfo", "MemFree") / 2048 * 3 / 4, i;
	long had = event("thp_fault_alloc");
	unsigned long nodes = 3;
	char *at;

	if (!exists(folder))
		return;
	/* In turns: a fault without a policy asks its own node alone. */
	if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &nodes, 8 * sizeof(nodes)))
		fail("interleaving");
	write_to("/sys/kernel/mm/transparent_hugepage/defrag", "never");
	at = map(huge * 2 * MIB, 1);
	for (i = 0; i < huge; i++)
		at[i * 2 * MIB] = 1;
	printf("guest: %ld of %zu faults got a huge page without compaction\n", event("thp_fault_alloc") - had, huge);
	unmap(at, huge * 2 * MIB);
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
}

/* Huge pages of the pool, after compaction, of those that would fit. */
static void huge_pool(void)
{
	long fit = number("/proc/meminfo", "MemFree") / 2048;
	char text[32];

	if (!exists("/proc/sys/vm/nr_hugepages"))
		return;
	snprintf(text, sizeof(text), "%ld", fit);
	set("nr_hugepages", text);
	printf("guest: %ld of %ld huge pages had, with compaction\n", number("/proc/meminfo", "HugePages_Total"), fit);
	set("nr_hugepages", "0");
}

#define FILES 600
#define PIPES 150

/* A file of `pages` pages in tmpfs instead of the one with this number, or none. */
static void replace_file(int index, size_t pages)
{
	static char block[PAGE];
	char path[32];
	int file;

	snprintf(path, sizeof(path), "/tmp/kept%d", index);
	unlink(path);
	if (!pages)
		return;
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	while (pages--)
		if (write(file, block, PAGE) != (ssize_t)PAGE)
			fail("a file that is kept");
	close(file);
}

/* A pipe with a table of up to 64 KiB instead of the one with this number: memory that does not move. */
static void replace_pipe(int ends[2], size_t size)
{
	if (ends[0]) {
		close(ends[0]);
		close(ends[1]);
	}
	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, size) < 0)
		fail("a pipe that is kept");
}

static void fragmentation(const char *when)
{
	printf("guest: %-24s %ld MiB free, %ld MiB of it zero; unusable for 64 KiB %.3f, for 2 MiB %.3f, for 4 MiB %.3f\n", when,
	       number("/proc/meminfo", "MemFree") / 1024, zero_pages() / 256, unusable(4), unusable(9), unusable(10));
	fflush(stdout);
}

/* The number that the kernel's command line gives, as NAME=NUMBER. */
static int told(const char *name, int otherwise)
{
	return getenv(name) ? atoi(getenv(name)) : otherwise;
}

/*
 * How fragmented free memory is after a mix that keeps a part of what it allocates, and after all is given back: with
 * prezeroing off or on. The mix is of "rounds=" and the same for the same "seed=". prezerod has the same pauses
 * whether it works or not.
 */
void fragmenting(int on)
{
	static int pipes[PIPES][2];
	int rounds = told("rounds", 20), round, i;

	if (on)
		switch_on();
	fragmentation("at first");
	srandom(told("seed", 1));
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 60; i++)
			replace_file(random() % FILES, random() % 4 ? random() % 128 : 0);
		for (i = 0; i < 20; i++)
			replace_pipe(pipes[random() % PIPES], PAGE << random() % 11);
		run_mix(3, 2);
		usleep(300000);
	}
	fragmentation(on ? "after a mix, on" : "after a mix, off");
	huge_faults();
	huge_pool();
	for (i = 0; i < FILES; i++)
		replace_file(i, 0);
	for (i = 0; i < PIPES; i++) {
		if (pipes[i][0]) {
			close(pipes[i][0]);
			close(pipes[i][1]);
			pipes[i][0] = 0;
		}
	}
	fragmentation("given back");
	if (!on)
		return;
	settle();
	counters("fragmentation");
	conserved("fragmentation");
}
