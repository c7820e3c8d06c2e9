/* Letters in UTF-8. */
#include "wordcount.h"

uint32_t utf8_next(const unsigned char **at, const unsigned char *end)
{
    const unsigned char *p = *at;
    uint32_t letter = *p++;
    int more = letter < 0x80 ? 0 : letter < 0xc2 ? -1 : letter < 0xe0 ? 1 : letter < 0xf0 ? 2 : letter < 0xf5 ? 3 : -1;
    if (more < 0) {
        *at = p;
        return 0xfffd;
    }
    if (more)
        letter &= 0x3fu >> more;
    for (; more > 0; more--) {
        if (p == end || (*p & 0xc0) != 0x80) {
            *at = p;
            return 0xfffd;
        }
        letter = letter << 6 | (*p++ & 0x3f);
    }
    *at = p;
    return letter;
}

size_t utf8_put(char *out, uint32_t letter)
{
    if (letter < 0x80) {
        out[0] = (char)letter;
        return 1;
    }
    if (letter < 0x800) {
        out[0] = (char)(0xc0 | letter >> 6);
        out[1] = (char)(0x80 | (letter & 0x3f));
        return 2;
    }
    if (letter < 0x10000) {
        out[0] = (char)(0xe0 | letter >> 12);
        out[1] = (char)(0x80 | (letter >> 6 & 0x3f));
        out[2] = (char)(0x80 | (letter & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | letter >> 18);
    out[1] = (char)(0x80 | (letter >> 12 & 0x3f));
    out[2] = (char)(0x80 | (letter >> 6 & 0x3f));
    out[3] = (char)(0x80 | (letter & 0x3f));
    return 4;
}

static const uint32_t ranges[][2] = {
    {'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {0xc0, 0xd6}, {0xd8, 0xf6}, {0xf8, 0x24f}, {0x370, 0x52f}, {0x4e00, 0x9fff},
};

int is_letter(uint32_t letter)
{
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (letter >= ranges[i][0] && letter <= ranges[i][1])
            return 1;
    return 0;
}

uint32_t lower(uint32_t letter)
{
    if ((letter >= 'A' && letter <= 'Z') || (letter >= 0xc0 && letter <= 0xde && letter != 0xd7))
        return letter + 32;
    if (letter >= 0x391 && letter <= 0x3a9)
        return letter + 32;
    if (letter >= 0x410 && letter <= 0x42f)
        return letter + 32;
    if (letter >= 0x400 && letter <= 0x40f)
        return letter + 80;
    return letter;
}
