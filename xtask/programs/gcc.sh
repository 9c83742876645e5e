# A large generated file in C, optimised, with debug information.
set -eu
. "$COMMON"
case $1 in
prepare)
    need gcc
    awk -v functions="$(part 400)" 'BEGIN {
        print "#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>"
        for (i = 0; i < functions; i++) {
            printf "struct s%d { int a[%d]; struct s%d *next; const char *name; };\n", i, i % 17 + 1, i
            printf "static int f%d(struct s%d *s, int n) {\n", i, i
            printf "  int sum = %d;\n  for (int i = 0; i < n; i++) {\n", i
            printf "    sum += s->a[i %% %d] * %d;\n    if (sum & %d) s = s->next ? s->next : s;\n",
                i % 17 + 1, i * 7 + 1, i % 63 + 1
            printf "    switch (sum %% 7) { case 0: sum ^= i; break; case 3: sum -= n; break; }\n  }\n"
            printf "  return sum + (int)strlen(s->name);\n}\n"
            printf "int g%d(void) { struct s%d s; memset(&s, 0, sizeof s); s.name = \"name %d\";", i, i, i
            printf " return f%d(&s, %d)%s; }\n", i, i % 91, i ? " + g" i - 1 "()" : ""
        }
    }' >large.c
    ;;
run)
    gcc -O2 -g -c "$PREPARED/large.c" -ffile-prefix-map="$PWD"=. -o large.o
    objcopy --strip-debug large.o code.o
    sha256sum <large.o
    sha256sum <code.o
    ;;
esac
