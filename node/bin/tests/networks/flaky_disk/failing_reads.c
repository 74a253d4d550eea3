/* A disk that cannot be read for a while. Loaded into a process by LD_PRELOAD: as long as the file FAILING_READS_WHILE
 * exists, reads at an offset of files below FAILING_READS_OF fail with EIO, and each adds a line to FAILING_READS_LOG. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void note(const char *path) {
    char line[PATH_MAX + 1];
    int length = snprintf(line, sizeof line, "%s\n", path);
    int log = open(getenv("FAILING_READS_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* A single write: lines of several threads do not mix. */
    if (log < 0 || write(log, line, length) != length) abort();
    close(log);
}

static int is_failing(int file) {
    char link[32], path[PATH_MAX];
    const char *directory = getenv("FAILING_READS_OF");
    if (access(getenv("FAILING_READS_WHILE"), F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (strncmp(path, directory, strlen(directory)) != 0) return 0;
    note(path);
    return 1;
}

ssize_t preadv2(int file, const struct iovec *parts, int count, off_t offset, int flags) {
    ssize_t (*next)(int, const struct iovec *, int, off_t, int) = dlsym(RTLD_NEXT, "preadv2");
    int before = errno, fails = is_failing(file);
    errno = fails ? EIO : before;
    return fails ? -1 : next(file, parts, count, offset, flags);
}

ssize_t pread64(int file, void *bytes, size_t count, off64_t offset) {
    ssize_t (*next)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    int before = errno, fails = is_failing(file);
    errno = fails ? EIO : before;
    return fails ? -1 : next(file, bytes, count, offset);
}

/* Refuses direct reads, as some file systems do. The kernel would do them asynchronously, where no library is asked;
 * whoever is refused reads by one of the functions above. */
int open64(const char *path, int flags, ...) {
    int (*next)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if (flags & O_DIRECT) {
        errno = EINVAL;
        return -1;
    }
    return next(path, flags, mode);
}
