// What a module of C++ has besides functions: comdats, aliases, ifuncs, thread-local data, exceptions.
#include <cstdio>
#include <cstring>
#include <stdexcept>

struct Base {
    virtual ~Base() {}
    virtual int weight(int x) { return x; }
};
struct Heavy : Base {
    int weight(int x) override {
        if (x > 7) throw std::runtime_error("too heavy");
        return x * 3;
    }
};

template <class T> T twice(T x) { return x + x; }
inline int counted(int x) {
    static int sum = 0;
    return sum += x;
}
thread_local int mine = 3;
__attribute__((visibility("hidden"))) int hidden(int x) { return counted(x) + mine; }
__attribute__((weak)) int weak(int x) { return x - 1; }
extern "C" int other(int) __attribute__((alias("named")));
extern "C" int named(int x) { return x == 1 ? 5 : x == 2 ? 9 : x; }
static int chosen_here(int x) { return x + 1; }
extern "C" int (*choose(void))(int) { return chosen_here; }
extern "C" int chosen(int) __attribute__((ifunc("choose")));
__attribute__((constructor)) static void begin(void) { mine = 4; }

struct Word {
    char text[32];
    unsigned count;
};
static Word table[1 << 10];

static unsigned hashed(const char *text) {
    unsigned value = 2166136261u;
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 16777619u;
    return value;
}

template <int slots> int added(const char *text) {
    unsigned slot = hashed(text) % slots;
    for (int tried = 0; tried < slots; tried++, slot = (slot + 1) % slots) {
        if (!table[slot].count)
            std::strcpy(table[slot].text, text);
        else if (std::strcmp(table[slot].text, text))
            continue;
        table[slot].count++;
        return 1;
    }
    return 0;
}

static int used(const char *const *words, int count) {
    Base *base = new Heavy;
    int sum = 0;
    try {
        for (int i = 0; i < count; i++)
            sum += twice((int)std::strlen(words[i])) + base->weight(sum & 15) + added<1 << 10>(words[i]);
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
    }
    delete base;
    return sum + hidden(sum) + weak(sum) + other(2) + chosen(1) + (int)twice(2.5);
}

int main() {
    const char *const words[] = {"one", "three", "one", "seventeen", "twenty-nine"};
    int sum = used(words, 5) + used(words, 3);
    for (const Word &word : table)
        if (word.count) sum = sum * 31 + (int)word.count;
    std::printf("%d\n", sum);
}
