// SPDX-License-Identifier: GPL-2.0
/* Programs of the guest's memory disk: the kernel's own mm selftests and the command. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "guest.h"

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

/* The number of huge pages that a selftest wants: one of them exactly one. */
static const char *huge_pages(const char *test)
{
	if (strstr(test, "_madv"))
		return "1";
	return !strncmp(test, "huge", 4) || !strncmp(test, "uffd", 4) || strstr(test, "hugetlb") ? "24" : "0";
}

/* The kernel's own: each passes, or says by itself that it has nothing to test here. They run on a
 * kernel without the series too, to tell whose fault a failure is. */
void selftests(void)
{
	int with_series = exists("/proc/sys/vm/prezero");
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

/* The command itself, which checks its bytes; what it times means nothing here. */
void cachewise(void)
{
	char *runs[][8] = {
		{ "/cachewise", "run", "page-fault", "--quick" },
		{ "/cachewise", "run", "page-copy", "--quick" },
	};
	size_t i;

	if (cpu_is("QEMU")) {
		printf("guest: cachewise: an emulated CPU is not timed\n");
		return;
	}
	switch_on();
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		long skipped = event("prezero_skipped"), all;
		int status = run_program("/tmp", runs[i], 300);

		lines("", &all);
		printf("guest: cachewise run %s: status %d, %ld lines; %ld pages not zeroed again\n", runs[i][2],
		       status, all, event("prezero_skipped") - skipped);
		printed(status ? all - 12 : 0);
		if (status)
			fail("cachewise");
	}
	settle();
	counters("cachewise");
	conserved("cachewise");
}
