// SPDX-License-Identifier: GPL-2.0
/* What every part of the guest uses: the kernel's files, its counts, and how the guest ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>
#include "guest.h"

unsigned long checked;

static int has_word(const char *path, const char *word)
{
	char line[1024];
	int found = 0;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		found |= !!strstr(line, word);
	if (file)
		fclose(file);
	return found;
}

/* Returns whether /proc/cpuinfo has the word. */
int cpu_is(const char *word)
{
	return has_word("/proc/cpuinfo", word);
}

/* Returns whether the kernel's command line has the word. */
int said_at_boot(const char *word)
{
	return has_word("/proc/cmdline", word);
}

/* QEMU ends where its machine restarts, User Mode Linux where it is switched off. */
void end(void)
{
	fflush(stdout);
	sync();
	reboot(cpu_is("User Mode Linux") ? RB_POWER_OFF : RB_AUTOBOOT);
}

void fail(const char *what)
{
	printf("guest: FAILED: %s (%s)\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		end();
	_exit(1);
}

/* The number after `key` in `path`, or -1. */
long number(const char *path, const char *key)
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

int exists(const char *path)
{
	return !access(path, F_OK);
}

long event(const char *key)
{
	return number("/proc/vmstat", key);
}

/* Free pages that are zero and known to be. */
long zero_pages(void)
{
	return event("prezero_zeroed") - event("prezero_allocated") - event("prezero_dropped");
}

void write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	if (file < 0 || write(file, text, strlen(text)) < 0)
		fail(path);
	close(file);
}

void set(const char *name, const char *value)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/sys/vm/%s", name);
	write_to(path, value);
}

void counters(const char *when)
{
	printf("guest: %-22s zeroed %7ld allocated %7ld, zeroing skipped for %7ld, dropped %7ld, free and zero %ld\n",
	       when, event("prezero_zeroed"), event("prezero_allocated"), event("prezero_skipped"),
	       event("prezero_dropped"), zero_pages());
	fflush(stdout);
}

/* Waits until prezerod has nothing left to do. */
void settle(void)
{
	long before, now = -1;
	int i;

	for (i = 0; i < 600; i++) {
		before = now;
		usleep(300000);
		now = event("prezero_zeroed");
		if (now == before)
			return;
	}
	fail("prezerod does not come to rest");
}

/* Pages on the per-CPU lists, of any kind. */
long per_cpu_pages(void)
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

/*
 * With prezerod at rest: what the kernel finds on its free lists. Marked pages that no event accounts for are
 * on per-CPU lists, every marked page is zero, and no two buddies were left apart.
 */
void conserved(const char *when)
{
	long found[5] = { 0 }, rest = 0;
	char line[128];
	int i;

	for (i = 0; i < 20; i++) {
		FILE *file = fopen("/proc/prezero_test", "r");

		if (!file)
			fail("/proc/prezero_test");
		while (fgets(line, sizeof(line), file)) {
			sscanf(line, "pairs %ld", &found[0]);
			sscanf(line, "marked %ld", &found[1]);
			sscanf(line, "stale %ld", &found[2]);
			sscanf(line, "large %ld", &found[3]);
			sscanf(line, "displaced %ld", &found[4]);
		}
		fclose(file);
		rest = zero_pages() - found[1];
		if (rest >= 0 && rest <= per_cpu_pages())
			break;
		usleep(200000);
	}
	printf("guest: %-22s of %ld pages in large free blocks %ld are zero, %ld more on per-CPU lists; "
	       "%ld buddies apart, %ld blocks displaced\n", when, found[3], found[1], rest, found[0], found[4]);
	fflush(stdout);
	if (i == 20)
		fail("the counts do not add up");
	if (found[2])
		fail("a marked page was not zero");
	if (found[0])
		fail("buddies that are free were not merged");
}

void switch_on(void)
{
	set("prezero", "1");
	settle();
}
