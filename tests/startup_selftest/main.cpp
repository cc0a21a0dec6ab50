// All of the library is linked into this program and unused: before main() there must be no OpenCL call, no opened file
// and no thread. With the argument "use" it uses the library, which must be detected.
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

#include <declivity/functions/functions.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/tensor/creation.hpp>

#include "tests/support/interpose.hpp"

namespace {

constinit std::atomic<long> opened{0}, threads_started{0};

int count_entries(const char* folder) {
    int count = 0;
    DIR* const dir = opendir(folder);
    while (dir != nullptr)
        if (const dirent* entry = readdir(dir)) count += entry->d_name[0] != '.';
        else break;
    if (dir != nullptr) closedir(dir);
    return count;
}

}  // namespace

// Interposes the functions that open files and start threads. The loader's own calls are not seen.
extern "C" {

DECLIVITY_EXPORT int open(const char* path, int flags, ...) {
    ++opened;
    std::va_list more;
    va_start(more, flags);
    const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
    va_end(more);
    static auto* next = declivity::test::real<int(const char*, int, ...)>("open");
    return next(path, flags, mode);
}

DECLIVITY_EXPORT FILE* fopen(const char* path, const char* mode) {
    ++opened;
    static auto* next = declivity::test::real<FILE*(const char*, const char*)>("fopen");
    return next(path, mode);
}

DECLIVITY_EXPORT FILE* fopen64(const char* path, const char* mode) {
    ++opened;
    static auto* next = declivity::test::real<FILE*(const char*, const char*)>("fopen64");
    return next(path, mode);
}

DECLIVITY_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                                    void* argument) {
    ++threads_started;
    static auto* next =
        declivity::test::real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    return next(thread, attributes, start, argument);
}

}  // extern "C"

int main(int argc, char** argv) {
    const bool use = argc > 1 && std::strcmp(argv[1], "use") == 0;
    if (use) (void)(declivity::zeros({3}) + 1.0).to_vector<float>();
    const long calls = declivity::test::opencl_call_count();
    const int tasks = count_entries("/proc/self/task");
    std::printf("OpenCL calls: %ld, files opened: %ld, threads started: %ld, threads: %d\n", calls, opened.load(),
                threads_started.load(), tasks);
    if (use) return calls > 0 && opened > 0 ? 0 : 1;
    return calls == 0 && opened == 0 && threads_started == 0 && tasks <= 1 ? 0 : 1;
}
