/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the guest's only program share. */
#ifndef GUEST_H
#define GUEST_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define PAGE 4096UL
#define MIB (1UL << 20)

extern unsigned long checked;	/* pages read by this process and found zero */

/* base.c */
int cpu_is(const char *word);
int said_at_boot(const char *word);
void end(void);
void fail(const char *what);
long number(const char *path, const char *key);
int exists(const char *path);
long event(const char *key);
long zero_pages(void);
void write_to(const char *path, const char *text);
void set(const char *name, const char *value);
void counters(const char *when);
void settle(void);
long per_cpu_pages(void);
void conserved(const char *when);
void switch_on(void);

/* storms.c */
char *map(size_t size, int huge);
void unmap(char *at, size_t size);
void check_zero(char *at, size_t size);
void run_mmap(size_t size, int huge, int times);
void join(pid_t pid);
void run_fork_exec(int times);
void run_tmpfs(int times);
void run_pipes(int pipes);
void run_copyout(void);
void run_hugetlb(int pages);
void run_shared_huge(size_t size);
void run_guest_memory(size_t size);
void run_report(void);
void run_hibernation(void);
void swap_on(const char *device);
void run_pressure(void);
void run_poison(int times);
void run_hotplug(void);
void run_mix(int processes, int times);

/* figures.c */
long print_file(const char *path, const char *when);
void counting(void);
void benching(void);
void fork_footprint(size_t pages, int times);
void fragmenting(int on);

/* programs.c */
void selftests(void);
void cachewise(void);

#endif
