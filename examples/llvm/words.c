/* Prints the most frequent words of standard input: words [HOW_MANY]. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 31, SLOTS = 1 << 14 };

struct word {
    char text[LONGEST + 1];
    unsigned count;
};

static struct word table[SLOTS];

static unsigned hash(const char *text) {
    unsigned value = 2166136261u;
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
}

static int add(const char *text) {
    unsigned slot = hash(text) % SLOTS;
    for (unsigned tried = 0; tried < SLOTS; tried++, slot = (slot + 1) % SLOTS) {
        if (!table[slot].count)
            strcpy(table[slot].text, text);
        else if (strcmp(table[slot].text, text))
            continue;
        table[slot].count++;
        return 1;
    }
    return 0;
}

static int read_word(char *text) {
    int length = 0, letter;
    while ((letter = getchar()) != EOF && !isalpha(letter))
        ;
    for (; letter != EOF && isalpha(letter); letter = getchar())
        if (length < LONGEST)
            text[length++] = (char)tolower(letter);
    text[length] = 0;
    return length;
}

static int by_count(const void *a, const void *b) {
    const struct word *one = a, *other = b;
    if (one->count != other->count)
        return one->count < other->count ? 1 : -1;
    return strcmp(one->text, other->text);
}

int main(int argc, char **argv) {
    int most = argc > 1 ? atoi(argv[1]) : 10;
    char text[LONGEST + 1];
    while (read_word(text))
        if (!add(text))
            return 1;
    qsort(table, SLOTS, sizeof *table, by_count);
    for (int i = 0; i < most && i < SLOTS && table[i].count; i++)
        printf("%6u %s\n", table[i].count, table[i].text);
    return 0;
}
