// SPDX-License-Identifier: GPL-2.0
/* Workloads of each kind that allocates. Each reads every byte that should be zero. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysmacros.h>
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

/*
 * Requests of the kernel for zeroed blocks of 2 MiB: the tables of pipes. They claim blocks of movable memory. Where
 * there are huge pages, blocks that were used and lie on per-CPU lists are taken first.
 */
void run_pipes(int pipes)
{
	long skipped = event("prezero_skipped");
	int ends[16][2], i;

	for (i = 0; i < pipes; i++)
		if (pipe(ends[i]) || fcntl(ends[i][1], F_SETPIPE_SZ, 128 * MIB) < 0 || write(ends[i][1], "", 1) != 1)
			fail("a pipe of 128 MiB");
	skipped = event("prezero_skipped") - skipped;
	for (i = 0; i < pipes; i++) {
		close(ends[i][0]);
		close(ends[i][1]);
	}
	printf("guest: tables of %d pipes, %ld pages of them not zeroed again\n", pipes, skipped);
	if (skipped < (exists("/sys/kernel/mm/transparent_hugepage") ? pipes / 2 : pipes) * 512)
		fail("the kernel took nothing that was zero");
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

/* Huge pages of shared memory: holes that faults fill. */
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

/* A file that is allocated in part, whose allocation then fails: what it has is zero, and what failed is undone. */
static void run_fallocate(int file, size_t size)
{
	char *at;

	if (fallocate(file, 0, 0, size / 2))
		fail("fallocate");
	if (!fallocate(file, 0, size / 2, 1UL << 40))
		fail("fallocate of more than there is");
	if (ftruncate(file, size))
		fail("ftruncate");
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		fail("mmap of a file");
	check_zero(at, size);
	munmap(at, size);
}

/*
 * Memory as for a virtual machine: anonymous, of a file in memory, of one of hugetlb's, and populated before it is
 * used. Pages that are written in part come before those.
 */
void run_guest_memory(size_t size)
{
	static char buffer[100];
	static const struct { const char *name; unsigned int flags; } files[] = {
		{ "shared", MFD_CLOEXEC }, { "hugetlb", MFD_CLOEXEC | MFD_HUGETLB },
	};
	char *at = map(size, 1);
	long skipped = event("prezero_skipped");
	unsigned int i;

	if (madvise(at, size, MADV_POPULATE_WRITE))
		fail("populating anonymous memory");
	printf("guest: memory of a guest: %ld of %zu pages not zeroed again\n", event("prezero_skipped") - skipped, size / PAGE);
	if (event("prezero_skipped") - skipped < (long)(size / PAGE / 2))
		fail("the memory of a guest took nothing that was zero");
	check_zero(at, size);
	unmap(at, size);
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int file = memfd_create(files[i].name, files[i].flags);
		size_t byte;

		if (file < 0)
			fail(files[i].name);
		settle();
		if (files[i].flags & MFD_HUGETLB)
			set("nr_hugepages", "16");
		else if (pwrite(file, memset(buffer, 0x5a, sizeof(buffer)), sizeof(buffer), MIB) != sizeof(buffer))
			fail("writing a part of a page");
		if (ftruncate(file, size))
			fail("ftruncate");
		skipped = event("prezero_skipped");
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		if (at == MAP_FAILED || madvise(at, size, MADV_POPULATE_WRITE))
			fail("populating a file in memory");
		printf("guest: memory of a guest, %s: %ld of %zu pages not zeroed again\n", files[i].name,
		       event("prezero_skipped") - skipped, size / PAGE);
		if (event("prezero_skipped") == skipped)
			fail("the memory of a guest took nothing that was zero");
		if (!(files[i].flags & MFD_HUGETLB)) {
			for (byte = 0; byte < sizeof(buffer); byte++)
				if (at[MIB + byte] != 0x5a)
					fail("bytes that were written");
			memset(at + MIB, 0, sizeof(buffer));
		}
		check_zero(at, size);
		munmap(at, size);
		close(file);
		if (files[i].flags & MFD_HUGETLB) {
			set("nr_hugepages", "0");
			continue;
		}
		file = memfd_create("fallocate", MFD_CLOEXEC);
		run_fallocate(file, size);
		close(file);
	}
}

/*
 * Free pages are reported as to a hypervisor, those that are zero as well. prezerod works no more after that, since it
 * would take the memory back, and cannot be switched on.
 */
void run_report(void)
{
	long large = number("/proc/prezero_test", "large"), marked = number("/proc/prezero_test", "marked"), reported = 0, zero = 0, before;
	char line[128];
	FILE *file = fopen("/proc/prezero_report", "r");
	int on = open("/proc/sys/vm/prezero", O_WRONLY);

	if (!file)
		fail("/proc/prezero_report");
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "reported %ld", &reported);
		sscanf(line, "zero %ld", &zero);
	}
	fclose(file);
	printf("guest: of %ld pages in large free blocks, %ld of them zero, %ld were reported, %ld of them zero\n", large, marked,
	       reported, zero);
	/* Page reporting leaves a zone alone where less than 64 MiB are free: QEMU's guest has such. */
	if (reported < large / 2 || zero < reported / 10 * 9)
		fail("what is zero was not reported");
	before = event("prezero_zeroed");
	run_mmap(32 * MIB, 1, 2);
	sleep(1);
	if (event("prezero_zeroed") != before || write(on, "1", 1) == 1)
		fail("prezerod works though free pages are reported");
	close(on);
}

/*
 * The image of a hibernation does not have what free blocks hold. It is written to the disk for swapping and read
 * again at once ("test_resume"): nothing that was marked before may count as zero afterwards.
 */
void run_hibernation(void)
{
	struct stat disk;
	char text[32];

	if (!exists("/sys/power/disk") || stat("/dev/ram1", &disk))
		return;
	swap_on("/dev/ram1");
	snprintf(text, sizeof(text), "%u:%u", major(disk.st_rdev), minor(disk.st_rdev));
	write_to("/sys/power/resume", text);
	write_to("/sys/power/disk", "test_resume");
	write_to("/sys/power/state", "disk");
	conserved("hibernation");
	settle();
	printf("guest: came back from a hibernation\n");
	counters("hibernation");
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

/* More than what is free, less than what is free and can be swapped; nearly all of it where nothing can. */
void run_pressure(void)
{
	long available = number("/proc/meminfo", "MemAvailable"), swap = number("/proc/meminfo", "SwapFree");
	/* Memory on per-CPU lists is available but not counted as available. */
	size_t size = (swap > 0 ? available + per_cpu_pages() * 4 + swap / 2 : available / 10 * 9) * 1024 & ~(PAGE - 1), page;
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
	if (swap > 0 && event("pswpout") == before)
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
