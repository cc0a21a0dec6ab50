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

// Blocks SIGXFSZ in this thread, which terminates the program by default, and consumes one raised by a write.
class BlockSigxfsz {
  public:
    BlockSigxfsz() {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &signal_, &previous_mask_);
    }
    ~BlockSigxfsz() {
        const int error = errno;
        if (!was_pending_) {
            const timespec no_wait{};
            while (sigtimedwait(&signal_, nullptr, &no_wait) < 0 && errno == EINTR) continue;
        }
        pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
        errno = error;
    }
    BlockSigxfsz(const BlockSigxfsz&) = delete;
    BlockSigxfsz& operator=(const BlockSigxfsz&) = delete;

  private:
    sigset_t signal_{};
    sigset_t previous_mask_{};
    bool was_pending_ = false;
};

fs::path follow_links(fs::path path) {
    constexpr int kMaxLinks = 40;  // the kernel's limit
    std::error_code ignored;
    for (int i = 0; i < kMaxLinks && fs::is_symlink(path, ignored); ++i) {
        const fs::path link_target = fs::read_symlink(path, ignored);
        if (ignored) break;
        path = path.parent_path() / link_target;
    }
    return path;
}

// A rename is durable only after its folder is synced.
void sync_folder(const fs::path& folder) {
    const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;  // a folder that is writable but not readable cannot be synced
    const int error = ::fsync(descriptor) == 0 ? 0 : errno;
    ::close(descriptor);
    // Some file systems cannot sync folders and return EINVAL.
    if (error != 0 && error != EINVAL) throw IoError("sync folder", folder.string(), error);
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& target) : target_(follow_links(target)) {
    struct stat existing {};
    const bool exists = ::stat(target_.c_str(), &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode)) throw IoError("write", target_.string(), EISDIR);
    // A rename would replace /dev/null by a plain file.
    if (exists && !S_ISREG(existing.st_mode)) throw IoError("replace (not a plain file)", target_.string(), EINVAL);
    open_temporary();
    // Some file systems have no permissions, so a failure is no error.
    if (exists && ::fchmod(descriptor_, existing.st_mode & 07777) != 0) errno = 0;
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
            // A file of that name owned by another user is skipped; a missing folder is an error.
            if (error == EACCES || error == ELOOP || error == EISDIR || error == ENXIO || error == EINTR) continue;
            break;
        }
        // The lock distinguishes a live writer from a leftover of a killed one. Between open and lock the other writer
        // may have renamed this file to its target, so the name must still refer to it. On file systems without locks
        // (some cluster file systems) locking is skipped: there, only one program may write a target at a time.
        struct stat opened_status {};
        struct stat path_status {};
        const bool busy = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!busy && ::fstat(descriptor, &opened_status) == 0 && ::lstat(temporary_.c_str(), &path_status) == 0 &&
            opened_status.st_ino == path_status.st_ino && opened_status.st_dev == path_status.st_dev &&
            S_ISREG(opened_status.st_mode) && opened_status.st_nlink == 1 && ::ftruncate(descriptor, 0) == 0) {
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
    // Removed before the lock is released: afterwards it could be another writer's.
    ::unlink(temporary_.c_str());
    ::close(descriptor_);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
    constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;  // one write() takes less than 2 GiB
    const BlockSigxfsz blocked_signal;
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMaxWriteBytes));
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
    // Closed after the rename, so that the lock covers the name. Write errors were already reported by fsync.
    ::close(descriptor);
    sync_folder(target_.has_parent_path() ? target_.parent_path() : fs::path("."));
}

void write_file(const fs::path& target, std::span<const std::byte> bytes) {
    AtomicFile file(target);
    file.write(bytes);
    file.commit();
}

}  // namespace declivity::io
