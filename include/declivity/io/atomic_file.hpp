// Layer 4. Writing a file so that its name always stands for a whole one: the old content or the new.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <declivity/export.hpp>

namespace declivity::io {

/// Writes to a temporary file in the same folder; `commit` brings it to the disk and renames it over the target.
/// Until then, and after any error, the target is as it was; a crash of the program or of the machine leaves the
/// old content or the new. The temporary is called NAME.tmp (NAME.1.tmp, ... while another writer holds that one), is
/// removed on failure, and what a killed program left of it is used again by the next write.
///
/// Where the process has a limit on the size of files (RLIMIT_FSIZE), passing it is an IoError, too: the signal
/// SIGXFSZ is held back while writing.
///
/// A symbolic link stays, and the file it points to is replaced. Permissions of a replaced file are kept.
class DECLIVITY_API AtomicFile {
  public:
    /// @throws IoError when the temporary cannot be created, or when `target` exists and is not a plain file
    explicit AtomicFile(const std::filesystem::path& target);
    /// Removes the temporary unless `commit` was reached.
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Appends bytes. @throws IoError when the system refuses them (disk full, quota, size limit)
    void write(std::span<const std::byte> bytes);
    /// Puts the new content under the name of the target. Call it once, at the end.
    /// @throws IoError; when it says "sync folder", the new content already stands under the name, but might not
    /// survive a crash of the machine
    void commit();

  private:
    void open_temporary();

    std::filesystem::path target_;
    std::filesystem::path temporary_;
    int descriptor_ = -1;
};

/// Replaces the content of a file by `bytes`, whole or not at all. @throws IoError, see AtomicFile
DECLIVITY_API void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes);

}  // namespace declivity::io
