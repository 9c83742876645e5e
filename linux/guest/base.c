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

/* Whether /proc/cpuinfo has the word. */
int cpu_is(const char *word)
{
	return has_word("/proc/cpuinfo", word);
}

/* Whether the kernel's command line has the word. */
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

long zero_pages(void)
{
	return number("/proc/meminfo", "MemZero") / 4;
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
	printf("guest: %-22s scrubbed %7ld hit %7ld miss %7ld wasted %7ld verified %7ld stale %ld failed %ld MemZero %ld\n",
	       when, event("zero_scrubbed"), event("zero_hit"), event("zero_miss"),
	       event("zero_wasted"), event("zero_verified"), event("zero_stale"),
	       event("zero_engine_failed"), zero_pages());
	fflush(stdout);
}

/* Waits until scrubd has nothing left to do. */
void settle(void)
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

/* With scrubd at rest: at most what the per-CPU lists hold is missing. */
void conserved(const char *when)
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

void switch_on(void)
{
	set("scrub_verify", "1");
	set("scrub_stop", "0");
	set("scrub_start", "0");
	settle();
}
