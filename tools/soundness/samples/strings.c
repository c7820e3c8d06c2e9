/* Strings: the library's functions, and our own. */
#include "samples.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "the quick brown fox jumps over the lazy dog; The end, 42 times 0x1F";

static int palindrome(const char *s) {
    for (const char *e = s + strlen(s); s < e--; s++)
        if (*s != *e)
            return 0;
    return 1;
}

static int match(const char *pattern, const char *s) {
    for (; *pattern; pattern++, s++) {
        if (*pattern == '*') {
            do
                if (match(pattern + 1, s))
                    return 1;
            while (*s++);
            return 0;
        }
        if (!*s || (*pattern != '?' && *pattern != *s))
            return 0;
    }
    return !*s;
}

static void squeeze(char *s) {
    char *out = s;
    for (; *s; s++)
        if (s[0] != ' ' || s[1] != ' ')
            *out++ = *s;
    *out = 0;
}

static int edits(const char *a, const char *b) {
    int row[32];
    int n = (int)strlen(b);
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int best = corner + (*a != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[n];
}

void strings(void) {
    char buffer[128], spaced[] = "a  b   c    d ";
    int seen[26] = {0};
    for (const char *s = text; *s; s++)
        if (isalpha((unsigned char)*s))
            seen[tolower((unsigned char)*s) - 'a']++;
    for (int i = 0; i < 26; i++)
        printf("%d", seen[i]);
    squeeze(spaced);
    printf("\n%s|%d%d%d\n", spaced, palindrome("abcba"), palindrome("abca"), palindrome(""));
    printf("%d%d%d%d\n", match("*fox*d?g*", text), match("th?", "the"), match("*x", "abc"), match("", ""));
    printf("%d %d\n", edits("kitten", "sitting"), edits("", "abc"));
    strcpy(buffer, text);
    for (char *word = strtok(buffer, " ;,"); word; word = strtok(NULL, " ;,"))
        printf("%c%zu ", *word, strlen(word));
    printf("\n%ld %s %zu\n", strtol(strstr(text, "0x"), NULL, 16), strrchr(text, 't'), strspn(text, "eht "));
    snprintf(buffer, sizeof buffer, "%-8s|%+06d|%x|%.2e|%c", "left", 42, 48879u, 12345.678, 'z');
    printf("%s %d %d\n", buffer, strcmp("abc", "abd") < 0, memcmp("xyz", "xya", 2));
}
