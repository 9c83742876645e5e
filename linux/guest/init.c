// SPDX-License-Identifier: GPL-2.0
/*
 * The first process of the guest, its only program: uses memory in every way while large free blocks are zeroed ahead,
 * and checks what is promised.
 *
 * 1. Every page that a program gets is zero: read here, byte by byte, by every workload, and in the kernel
 *    (PREZERO_DEBUG) for every block that is handed out as zero.
 * 2. The counts add up: zeroed = allocated + dropped + what is marked on the free and the per-CPU lists.
 * 3. The buddy allocator is as it was: no two free buddies are apart, a request that may not wait for the zone's lock
 *    does not, and page reporting sees what is zero.
 * 4. Memory that is short is not kept back: more than there is can be used while swapping.
 *
 * After that: the kernel's own mm selftests and the command, where the memory disk has them.
 *
 * "invariants", "selftests" and "cachewise" among its arguments choose of these parts. "count" prints the time per
 * fault only, also of a kernel without the series. With QEMU's -icount shift=0 a nanosecond of the guest's clock is one
 * instruction. "bench" prints what the kernel's own timing of its allocator says (/proc/zeroed_bench): User Mode Linux
 * runs at the CPU's speed. "fork" prints how many pages a fork zeroes and copies. "fragment" prints how fragmented free
 * memory is after a mix, with prezeroing off, or on where "prezero" is there too.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest.h"

/* Memory that was used is free again, and prezerod leaves it alone. */
static void rests(const char *what)
{
	long before = event("prezero_zeroed");

	run_mmap(32 * MIB, 1, 2);
	sleep(1);
	if (event("prezero_zeroed") != before)
		fail(what);
}

/* Fails unless so many pages were not zeroed again since there were `before`. */
static void skipped(long before, long pages, const char *what)
{
	before = event("prezero_skipped") - before;
	printf("guest: %-22s %ld pages not zeroed again\n", what, before);
	if (before < pages)
		fail(what);
}

/*
 * Every large free block is zero, and stands where it should. A block that lay on a per-CPU list meanwhile takes a
 * while longer: that of a request which looking at the free lists makes, on each zone.
 */
static void all_zeroed(void)
{
	int turn;

	for (turn = 0; turn < 20; turn++) {
		long marked = -1, large = -2, displaced = -1;
		char line[128];
		FILE *file = fopen("/proc/prezero_test", "r");

		while (file && fgets(line, sizeof(line), file)) {
			sscanf(line, "marked %ld", &marked);
			sscanf(line, "large %ld", &large);
			sscanf(line, "displaced %ld", &displaced);
		}
		if (file)
			fclose(file);
		if (marked == large && !displaced)
			return;
		settle();
	}
	fail("not every large block was zeroed");
}

static void testing(void)
{
	long before;

	/* User Mode Linux has no disk, and so nothing to swap to. */
	if (exists("/dev/ram0"))
		swap_on("/dev/ram0");
	run_fork_exec(200);
	conserved("off");
	if (event("prezero_zeroed") || event("prezero_allocated"))
		fail("off, and still counting");

	switch_on();
	counters("zeroed");
	conserved("zeroed");
	all_zeroed();
	run_fork_exec(400);
	run_mmap(48 * MIB, 0, 6);
	run_tmpfs(6);
	settle();
	counters("small pages");
	conserved("small pages");
	run_pipes(8);
	if (exists("/proc/sys/vm/copyout_nontemporal"))
		run_copyout();
	/* They compare bytes themselves; on an emulated CPU their times are none. */
	if (exists("/proc/vector_bench") && !print_file("/proc/vector_bench", NULL))
		fail("/proc/vector_bench");
	if (exists("/proc/copy_page_bench") && !print_file("/proc/copy_page_bench", NULL))
		fail("/proc/copy_page_bench");
	if (exists("/sys/kernel/mm/transparent_hugepage")) {
		long huge = event("thp_fault_alloc");

		settle();
		before = event("prezero_skipped");
		run_mmap(64 * MIB, 1, 6);
		if (event("thp_fault_alloc") == huge)
			fail("no huge page was used");
		skipped(before, 24 * 512, "huge pages");
	}
	settle();
	conserved("huge pages");
	if (exists("/sys/kernel/mm/hugepages")) {
		before = event("prezero_skipped");
		run_hugetlb(16);
		skipped(before, 16 * 512, "hugetlb");
	}
	if (exists("/sys/kernel/mm/transparent_hugepage/shmem_enabled")) {
		write_to("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always");
		settle();
		before = event("prezero_skipped");
		run_shared_huge(32 * MIB);
		skipped(before, 8 * 512, "shared memory");
		settle();
		run_guest_memory(32 * MIB);
		write_to("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "never");
	}
	settle();
	counters("hugetlb, shared memory");
	conserved("hugetlb, shared memory");
	run_pressure();
	settle();
	counters("pressure and swap");
	conserved("pressure and swap");
	run_mix(6, 12);
	/* prezerod had no CPU meanwhile: it is of the idle class. */
	settle();
	conserved("a mix");
	if (exists("/sys/devices/system/memory")) {
		run_hotplug();
		run_poison(20);
		settle();
		counters("hotplug, bad memory");
		conserved("hotplug, bad memory");
	}
	/* Compaction moves pages between lists while everything goes on. */
	if (exists("/proc/sys/vm/compact_memory"))
		set("compact_memory", "1");
	run_mix(6, 12);
	settle();
	counters("compaction");
	conserved("compaction");
	run_hibernation();

	set("prezero", "0");
	rests("prezerod works though it is off");
	switch_on();
	run_report();
	counters("at the end");
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
	static const char *const words[] = { "count", "bench", "fork", "fragment", "invariants", "selftests", "cachewise" };
	const unsigned int figures = 4;
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (named(argc, argv, words[i]))
			return named(argc, argv, name);
	for (i = 0; i < figures; i++)
		if (!strcmp(name, words[i]))
			return 0;
	return 1;
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
	if (part(argc, argv, "fragment"))
		fragmenting(named(argc, argv, "prezero"));
	if (part(argc, argv, "invariants"))
		testing();
	if (part(argc, argv, "selftests") && exists("/selftests"))
		selftests();
	if (part(argc, argv, "cachewise") && exists("/cachewise"))
		cachewise();
	printf("guest: ok, %lu pages read by the first process, %ld read by the kernel as they were allocated\n", checked,
	       event("prezero_allocated"));
	end();
	return 0;
}
