/* What a resolver allocated is used, grown and freed once everything is there. */
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 8 };
extern unsigned char *kept[BLOCKS];
extern int kept_lengths[BLOCKS];
int call_chosen(void);

int main(void)
{
    if (call_chosen() != 42)
        return 1;
    for (int at = 0; at < BLOCKS; at++) {
        if (at % 2 == 0)
            kept[at] = realloc(kept[at], 300000);
        for (int byte = 0; byte < kept_lengths[at]; byte++)
            if (kept[at] == NULL || kept[at][byte] != at + 1)
                return 2;
        free(kept[at]);
    }
    puts("chosen");
    return 0;
}
