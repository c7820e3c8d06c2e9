/* Count words: wordcount FILE... prints the twenty most frequent. */
#include "wordcount.h"
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 256, SHOWN = 20 };

static char *read_all(FILE *file, size_t *length)
{
    size_t room = 4096, used = 0, got;
    char *text = malloc(room);
    while (text && (got = fread(text + used, 1, room - used, file)) > 0) {
        used += got;
        if (used == room) {
            char *more = realloc(text, room *= 2);
            if (!more)
                free(text);
            text = more;
        }
    }
    *length = used;
    return text;
}

static int count_words(struct table *table, const char *text, size_t length)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    char word[LONGEST + 4];
    size_t used = 0;
    while (at < end) {
        uint32_t letter = utf8_next(&at, end);
        if (is_letter(letter) && used < LONGEST) {
            used += utf8_put(word + used, lower(letter));
        } else if (used) {
            if (!table_add(table, word, used))
                return 0;
            used = 0;
        }
    }
    return !used || table_add(table, word, used) != NULL;
}

int main(int argc, char **argv)
{
    struct table table = {0};
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "rb");
        if (!file) {
            perror(argv[i]);
            return 1;
        }
        size_t length;
        char *text = read_all(file, &length);
        fclose(file);
        if (!text || !count_words(&table, text, length)) {
            fputs("out of memory\n", stderr);
            return 1;
        }
        free(text);
    }
    size_t count = table_pack(&table);
    sort_words(table.words, count);
    for (size_t i = 0; i < count && i < SHOWN; i++)
        printf("%8llu %s\n", (unsigned long long)table.words[i].count, table.words[i].text);
    return 0;
}
