// Layer 6. Atomic replacement of files: the name always refers to the complete old or new contents.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include <declivity/export.hpp>

namespace declivity::io {

/// @addtogroup io
/// @{

/// Writes to a temporary file in the same folder; `commit` flushes it to disk and renames it over the target. Until
/// then, and after any error, the target is unchanged; after a crash of the program or machine it has either the old or
/// the new contents. The temporary file is called NAME.tmp (NAME.1.tmp, ... if another writer has locked it), is
/// removed on failure, and is reused by the next write if a killed program left it.
///
/// Exceeding the file size limit of the process (RLIMIT_FSIZE) is an IoError, too: the signal SIGXFSZ is blocked while
/// writing.
///
/// A symbolic link is kept, and the file that it points to is replaced. Permissions of a replaced file are kept.
class DECLIVITY_API AtomicFile {
  public:
    /// @throws IoError if the temporary file cannot be created, or if `target` exists and is not a regular file
    explicit AtomicFile(const std::filesystem::path& target);
    /// Removes the temporary file unless `commit` succeeded.
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Appends bytes. @throws IoError if the system refuses them (disk full, quota, size limit)
    void write(std::span<const std::byte> bytes);
    /// Replaces the target. Call it once, at the end.
    /// @throws IoError; if it says "sync folder", the target is already replaced, but might not survive a crash of the
    /// machine
    void commit();

  private:
    void open_temporary();

    std::filesystem::path target_;
    std::filesystem::path temporary_;
    int descriptor_ = -1;
};

/// Atomically replaces the contents of a file by `bytes`. @throws IoError, see AtomicFile
DECLIVITY_API void write_file(const std::filesystem::path& target, std::span<const std::byte> bytes);

/// @}

}  // namespace declivity::io
