/* A file system in memory: files are written, read, renamed, truncated and removed, with mounts between. */

#include <stdio.h>
#include <string.h>

#include "lfs.h"

enum { BLOCK = 512, BLOCKS = 256, FILES = 12, LARGEST = 6000 };

static unsigned char storage[BLOCK * BLOCKS];
static unsigned char contents[FILES][LARGEST];
static unsigned sizes[FILES];
static unsigned state = 12345;

static unsigned drawn(unsigned limit) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % limit;
}

static int read_block(const struct lfs_config *c, lfs_block_t block, lfs_off_t offset, void *to, lfs_size_t n) {
    memcpy(to, storage + block * c->block_size + offset, n);
    return 0;
}

static int write_block(const struct lfs_config *c, lfs_block_t block, lfs_off_t offset, const void *from,
                       lfs_size_t n) {
    memcpy(storage + block * c->block_size + offset, from, n);
    return 0;
}

static int erase_block(const struct lfs_config *c, lfs_block_t block) {
    memset(storage + block * c->block_size, 0xff, c->block_size);
    return 0;
}

static int sync_blocks(const struct lfs_config *c) {
    (void)c;
    return 0;
}

static const struct lfs_config configuration = {
    .read = read_block, .prog = write_block, .erase = erase_block, .sync = sync_blocks,
    .read_size = 16, .prog_size = 16, .block_size = BLOCK, .block_count = BLOCKS,
    .cache_size = 64, .lookahead_size = 16, .block_cycles = 100,
};

static lfs_t fs;

static int failed(const char *what, int code) {
    printf("%s: %d\n", what, code);
    return 1;
}

static int write_file(unsigned number, const char *path) {
    lfs_file_t file;
    unsigned begin = drawn(sizes[number] + 1), n = drawn(LARGEST - begin);
    int code = lfs_file_open(&fs, &file, path, LFS_O_RDWR | LFS_O_CREAT);
    if (code) return code;
    for (unsigned i = 0; i < n; i++) contents[number][begin + i] = drawn(256);
    lfs_file_seek(&fs, &file, begin, LFS_SEEK_SET);
    if (lfs_file_write(&fs, &file, contents[number] + begin, n) != (lfs_ssize_t)n) return -1;
    if (begin + n > sizes[number]) sizes[number] = begin + n;
    if (drawn(3) == 0) {
        sizes[number] = drawn(sizes[number] + 1);
        if ((code = lfs_file_truncate(&fs, &file, sizes[number]))) return code;
    }
    return lfs_file_close(&fs, &file);
}

static int check_file(unsigned number, const char *path) {
    static unsigned char read[LARGEST];
    lfs_file_t file;
    int code = lfs_file_open(&fs, &file, path, LFS_O_RDONLY);
    if (code) return code;
    if (lfs_file_size(&fs, &file) != (lfs_soff_t)sizes[number]) return -2;
    if (lfs_file_read(&fs, &file, read, sizes[number]) != (lfs_ssize_t)sizes[number]) return -3;
    if (memcmp(read, contents[number], sizes[number])) return -4;
    return lfs_file_close(&fs, &file);
}

int main(void) {
    char path[32], other[32];
    unsigned sum = 0;
    int code;
    if ((code = lfs_format(&fs, &configuration))) return failed("format", code);
    if ((code = lfs_mount(&fs, &configuration))) return failed("mount", code);
    if ((code = lfs_mkdir(&fs, "data"))) return failed("mkdir", code);
    for (int round = 0; round < 40; round++) {
        unsigned number = drawn(FILES);
        snprintf(path, sizeof path, "data/file%u", number);
        if ((code = write_file(number, path))) return failed("write", code);
        if ((code = check_file(number, path))) return failed("check", code);
        if (drawn(4) == 0) {
            snprintf(other, sizeof other, "moved%u", number);
            if ((code = lfs_rename(&fs, path, other))) return failed("rename", code);
            if ((code = check_file(number, other))) return failed("check", code);
            if ((code = lfs_setattr(&fs, other, 'a', &round, sizeof round)) < 0) return failed("attribute", code);
            if ((code = lfs_rename(&fs, other, path))) return failed("rename", code);
        }
        if (drawn(6) == 0) {
            if ((code = lfs_remove(&fs, path))) return failed("remove", code);
            sizes[number] = 0;
        }
        if (drawn(5) == 0) {
            if ((code = lfs_unmount(&fs))) return failed("unmount", code);
            if ((code = lfs_mount(&fs, &configuration))) return failed("mount", code);
        }
        sum = sum * 31 + (unsigned)lfs_fs_size(&fs);
    }
    lfs_dir_t folder;
    struct lfs_info info;
    if ((code = lfs_dir_open(&fs, &folder, "data"))) return failed("open", code);
    while (lfs_dir_read(&fs, &folder, &info) > 0) printf("%s %u\n", info.name, (unsigned)info.size);
    lfs_dir_close(&fs, &folder);
    printf("sum %u\n", sum);
    return 0;
}
