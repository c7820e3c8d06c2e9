/* Hash table of words. */
#include "wordcount.h"
#include <stdlib.h>
#include <string.h>

uint32_t hash_of(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) {
        hash ^= (unsigned char)text[i];
        hash *= 16777619u;
    }
    hash ^= hash >> 15;
    hash *= 0x85ebca6bu;
    return hash ^ (hash >> 13);
}

static struct word *find(struct word *words, size_t slots, const char *text, size_t length, uint32_t hash)
{
    size_t at = hash & (slots - 1);
    while (words[at].text) {
        if (words[at].hash == hash && words[at].length == length && !memcmp(words[at].text, text, length))
            break;
        at = (at + 1) & (slots - 1);
    }
    return &words[at];
}

static int grow(struct table *table)
{
    size_t slots = table->slots ? 2 * table->slots : 64;
    struct word *words = calloc(slots, sizeof *words);
    if (!words)
        return 0;
    for (size_t i = 0; i < table->slots; i++) {
        const struct word *old = &table->words[i];
        if (old->text)
            *find(words, slots, old->text, old->length, old->hash) = *old;
    }
    free(table->words);
    table->words = words;
    table->slots = slots;
    return 1;
}

struct word *table_add(struct table *table, const char *text, size_t length)
{
    uint32_t hash = hash_of(text, length);
    if (4 * table->used >= 3 * table->slots && !grow(table))
        return NULL;
    struct word *word = find(table->words, table->slots, text, length, hash);
    if (!word->text) {
        word->text = malloc(length + 1);
        if (!word->text)
            return NULL;
        memcpy(word->text, text, length);
        word->text[length] = 0;
        word->length = length;
        word->hash = hash;
        table->used++;
    }
    word->count++;
    return word;
}

size_t table_pack(struct table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->slots; i++)
        if (table->words[i].text)
            table->words[kept++] = table->words[i];
    return kept;
}
