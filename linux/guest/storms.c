// SPDX-License-Identifier: GPL-2.0
/* Workloads of each kind that allocates. Each reads every byte that should be zero. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest.h"

char *map(size_t size, int huge)
{
	char *at = mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap");
	at = (char *)(((uintptr_t)at + 2 * MIB - 1) & ~(2 * MIB - 1));
	madvise(at, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return at;
}

void unmap(char *at, size_t size)
{
	munmap(at, size);
}

/* The memory is read, has to be zero, and is left dirty. */
void check_zero(char *at, size_t size)
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

void run_mmap(size_t size, int huge, int times)
{
	while (times--) {
		char *at = map(size, huge);

		check_zero(at, size);
		unmap(at, size);
	}
}

void join(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		fail("a child");
}

void run_fork_exec(int times)
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

void run_tmpfs(int times)
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

/* Whole pages are written, which asks for no zero, but with init_on_alloc. */
void run_plain_writes(size_t size)
{
	static char buffer[PAGE];
	long hits = event("zero_hit"), asked = hits + event("zero_miss");
	int file = open("/tmp/file", O_WRONLY | O_CREAT | O_TRUNC, 0600), initialised = said_at_boot("init_on_alloc=1");
	size_t page;

	memset(buffer, 0x5a, PAGE);
	for (page = 0; page < size / PAGE; page++)
		if (write(file, buffer, PAGE) != (ssize_t)PAGE)
			fail("writing to tmpfs");
	close(file);
	unlink("/tmp/file");
	hits = event("zero_hit") - hits;
	asked = event("zero_hit") + event("zero_miss") - asked;
	printf("guest: %zu pages written whole%s: %ld pages wanted zero, %ld of them were\n", size / PAGE,
	       initialised ? ", init_on_alloc" : "", asked, hits);
	if (initialised != (asked >= (long)(size / PAGE)) || (initialised && !hits))
		fail("who wants zero");
}

/*
 * A block of 64 KiB, for the table of a pipe, is taken as zero, given back beside others that are zero and zeroed again.
 * It takes no mark from them: at most as many pages are wasted as were given back.
 */
void run_neighbours(int times)
{
	const long pages = 16;
	long hits = event("zero_hit"), wasted = event("zero_wasted");
	int i;

	for (i = 0; i < times; i++) {
		int ends[2];

		if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, 4 * MIB) < 0 || write(ends[1], "", 1) != 1)
			fail("a pipe of 4 MiB");
		close(ends[0]);
		close(ends[1]);
		settle();
	}
	hits = event("zero_hit") - hits;
	wasted = event("zero_wasted") - wasted;
	printf("guest: %d blocks of 64 KiB given back: %ld zeroed pages taken, %ld wasted\n", times, hits, wasted);
	if (hits < times * pages / 2)
		fail("no zeroed block was taken");
	if (wasted > times * pages)
		fail("a block that was given back took its neighbours' mark");
}

/* Reads of many lengths and alignments around the cache, also into memory that ends before them. */
void run_copyout(void)
{
	static char bytes[2 * PAGE];
	char *at = map(2 * MIB, 0), *end = at + 3 * PAGE;
	int file = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t length, offset, there, i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = i % 251 + 1;
	if (write(file, bytes, sizeof(bytes)) != sizeof(bytes) || mprotect(end, PAGE, PROT_NONE))
		fail("a file to read");
	write_to("/proc/sys/vm/copyout_nontemporal", "1");
	for (length = 1; length <= sizeof(bytes); length += 1 + length / 16) {
		for (offset = 0; offset < 16; offset++) {
			memset(at, 0, 3 * PAGE);
			if (pread(file, at + offset, length, 0) != (ssize_t)length || memcmp(at + offset, bytes, length) ||
			    at[offset + length])
				fail("a read around the cache");
			there = length < sizeof(bytes) - offset ? length : sizeof(bytes) - offset;
			if (pread(file, end - length, sizeof(bytes), offset) > (ssize_t)there ||
			    memcmp(end - length, bytes + offset, there - there % 8))
				fail("a read around the cache into memory that ends");
			madvise(at, 3 * PAGE, MADV_DONTNEED);
		}
	}
	unlink("/tmp/file");
	close(file);
	run_tmpfs(1);
	run_mix(2, 4);
	write_to("/proc/sys/vm/copyout_nontemporal", "0");
	unmap(at, 2 * MIB);
	printf("guest: copies to user space around the cache\n");
}

/* Pages of hugetlb's pool, filled while there are zeroed blocks: used, given back, and used again. */
void run_hugetlb(int pages)
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
void run_shared_huge(size_t size)
{
	long huge = event("thp_file_alloc");
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("mmap of shared memory");
	check_zero(at, size);
	munmap(at, size);
	printf("guest: shared memory: %ld huge pages\n", event("thp_file_alloc") - huge);
}

void swap_on(const char *device)
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
void run_pressure(void)
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
void run_poison(int times)
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
void run_hotplug(void)
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
void run_mix(int processes, int times)
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
