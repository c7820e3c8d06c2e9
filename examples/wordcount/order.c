/* Order of words: the most frequent first. */
#include "wordcount.h"
#include <string.h>

int compare(const struct word *one, const struct word *other)
{
    if (one->count != other->count)
        return one->count < other->count ? 1 : -1;
    size_t shorter = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->text, other->text, shorter);
    return order ? order : one->length < other->length ? -1 : one->length > other->length;
}

static void swap(struct word *one, struct word *other)
{
    struct word kept = *one;
    *one = *other;
    *other = kept;
}

static void sift(struct word *words, size_t at, size_t count)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && compare(&words[child], &words[child + 1]) < 0)
            child++;
        if (compare(&words[at], &words[child]) >= 0)
            return;
        swap(&words[at], &words[child]);
        at = child;
    }
}

void sort_words(struct word *words, size_t count)
{
    for (size_t at = count / 2; at-- > 0;)
        sift(words, at, count);
    for (size_t left = count; left > 1; left--) {
        swap(&words[0], &words[left - 1]);
        sift(words, 0, left - 1);
    }
}
