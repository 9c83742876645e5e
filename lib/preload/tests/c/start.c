/* Counts the system calls of a program from its exec to its end: start PROGRAM.
   Ends with 77 where nobody may trace. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments) {
    if (count != 2) return 2;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(77);
        execl(arguments[1], arguments[1], (char *)0);
        _exit(1);
    }
    int status;
    long stops = 0;
    if (waitpid(child, &status, 0) != child) return 1;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    /* Stopped behind its exec. Each call stops it twice; the last one, exit_group, once. */
    for (;;) {
        if (ptrace(PTRACE_SYSCALL, child, 0, 0) != 0) return 1;
        if (waitpid(child, &status, 0) != child) return 1;
        if (WIFEXITED(status)) break;
        if (!WIFSTOPPED(status)) return 1;
        stops += 1;
    }
    if (WEXITSTATUS(status) != 0) return 1;
    printf("%ld\n", (stops + 1) / 2);
    return 0;
}
