// SPDX-License-Identifier: GPL-2.0
/*
 * The first process of the guest, its only program: exercises the zero lists and checks what they promise.
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
 * many pages a fork zeroes and copies. "fragment" prints how fragmented free memory is after a mix, with
 * the lists off, or on where "lists" is there too.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "guest.h"

// SPDX-License-Identifier: GPL-2.0

/* Memory that was used is free again, and scrubd leaves it alone. */
static void rests(const char *what)
{
	long before = event("zero_scrubbed");

	run_mmap(32 * MIB, 0, 2);
	sleep(1);
	if (event("zero_scrubbed") != before)
		fail(what);
}

static void testing(void)
{
	static const char *const engines[] = { "cpu", "nt", "test" };
	unsigned int i;

	swap_on("/dev/ram0");
	counters("off");
	run_fork_exec(200);
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
	run_plain_writes(64 * MIB);
	run_neighbours(8);
	conserved("neighbours");
	if (exists("/proc/sys/vm/copyout_nontemporal"))
		run_copyout();
	/* It compares bytes itself; on an emulated CPU its times are none. */
	if (exists("/proc/vector_bench") && !print_file("/proc/vector_bench", NULL))
		fail("/proc/vector_bench");
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
		fragmenting(named(argc, argv, "lists"));
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
