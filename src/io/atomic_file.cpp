#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

namespace declivity::io {
namespace {

namespace fs = std::filesystem;

// Holds SIGXFSZ back in this thread, whose default is to kill the program, and swallows the one that a write raised.
class HoldSizeSignal {
  public:
    HoldSizeSignal() {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    }
    ~HoldSizeSignal() {
        const int error = errno;
        if (!was_pending_) {
            const timespec at_once{};
            while (sigtimedwait(&signal_, nullptr, &at_once) < 0 && errno == EINTR) continue;
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = error;
    }
    HoldSizeSignal(const HoldSizeSignal&) = delete;
    HoldSizeSignal& operator=(const HoldSizeSignal&) = delete;

  private:
    sigset_t signal_{};
    sigset_t before_{};
    bool was_pending_ = false;
};

fs::path follow_links(fs::path path) {
    constexpr int kMaxLinks = 40;  // as the kernel has it
    std::error_code ignored;
    for (int i = 0; i < kMaxLinks && fs::is_symlink(path, ignored); ++i) {
        const fs::path aim = fs::read_symlink(path, ignored);
        if (ignored) break;
        path = path.parent_path() / aim;
    }
    return path;
}

// A rename is on the disk only when its folder is.
void sync_folder(const fs::path& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;  // a folder one may write but not read: there is no way to sync it
    const int error = ::fsync(descriptor) == 0 ? 0 : errno;
    ::close(descriptor);
    // Some file systems cannot sync folders and say so with EINVAL.
    if (error != 0 && error != EINVAL) throw IoError("sync folder", folder.string(), error);
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& target) : target_(follow_links(target)) {
    struct stat old {};
    const bool exists = ::stat(target_.c_str(), &old) == 0;
    if (exists && S_ISDIR(old.st_mode)) throw IoError("write", target_.string(), EISDIR);
    // A rename would put a plain file in the place of /dev/null.
    if (exists && !S_ISREG(old.st_mode)) throw IoError("replace (not a plain file)", target_.string(), EINVAL);
    open_temporary();
    // Not every file system has permissions to keep, so a refusal is no error.
    if (exists && ::fchmod(descriptor_, old.st_mode & 07777) != 0) errno = 0;
}

void AtomicFile::open_temporary() {
    constexpr int kTries = 100;
    int error = 0;
    for (int i = 0; i < kTries; ++i) {
        temporary_ = target_;
        temporary_ += i == 0 ? std::string(".tmp") : fmt::format(".{}.tmp", i);
        const int descriptor =
            ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (descriptor < 0) {
            error = errno;
            // Someone else's file of that name need not stop us; a missing folder does.
            if (error == EACCES || error == ELOOP || error == EISDIR || error == ENXIO || error == EINTR) continue;
            break;
        }
        // The lock tells a live writer from what a killed one left behind. Between open and lock the other writer may
        // have renamed this very file to its target, so the name must still stand for it. Where the file system has no
        // locks (some cluster file systems), we go on without: there, only one program may write a target at a time.
        struct stat opened {};
        struct stat named {};
        const bool busy = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!busy && ::fstat(descriptor, &opened) == 0 && ::lstat(temporary_.c_str(), &named) == 0 &&
            opened.st_ino == named.st_ino && opened.st_dev == named.st_dev && S_ISREG(opened.st_mode) &&
            opened.st_nlink == 1 && ::ftruncate(descriptor, 0) == 0) {
            descriptor_ = descriptor;
            return;
        }
        error = errno != 0 ? errno : EBUSY;
        ::close(descriptor);
    }
    throw IoError("create", temporary_.string(), error);
}

AtomicFile::~AtomicFile() {
    if (descriptor_ < 0) return;
    // Removed before the lock is given up, or it could be another writer's by then.
    ::unlink(temporary_.c_str());
    ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    constexpr std::size_t kMaxAtOnce = std::size_t{1} << 30;  // one write() takes less than 2 GiB
    const HoldSizeSignal hold;
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMaxAtOnce));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw IoError(fmt::format("write {} bytes to", bytes.size()), target_.string(), errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
}

void AtomicFile::commit() {
    if (::fsync(descriptor_) != 0) throw IoError("sync", target_.string(), errno);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
        throw IoError("rename a temporary to", target_.string(), errno);
    const int descriptor = descriptor_;
    descriptor_ = -1;
    // Closing comes after the rename, so that the lock covers the name. Its errors were fsync's to find.
    ::close(descriptor);
    sync_folder(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

void write_file(const fs::path& target, std::span<const std::byte> bytes) {
    AtomicFile file(target);
    file.write(bytes);
    file.commit();
}

}  // namespace declivity::io
