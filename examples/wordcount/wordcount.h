#include <stddef.h>
#include <stdint.h>

struct word {
    char *text;
    size_t length;
    uint32_t hash;
    uint64_t count;
};

struct table {
    struct word *words; /* open addressing; text is NULL in an empty slot */
    size_t slots, used;
};

uint32_t hash_of(const char *text, size_t length);
struct word *table_add(struct table *table, const char *text, size_t length);
size_t table_pack(struct table *table);

uint32_t utf8_next(const unsigned char **at, const unsigned char *end);
size_t utf8_put(char *out, uint32_t letter);
int is_letter(uint32_t letter);
uint32_t lower(uint32_t letter);

int compare(const struct word *one, const struct word *other);
void sort_words(struct word *words, size_t count);
