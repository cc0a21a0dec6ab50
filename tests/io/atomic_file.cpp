// A file is replaced completely or not at all, whatever fails.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <declivity/io/atomic_file.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/support/temp_folder.hpp>

using namespace declivity;
using namespace declivity::test;
namespace fs = std::filesystem;

namespace {

std::span<const std::byte> view(const Bytes& bytes) { return std::as_bytes(std::span(bytes)); }

}  // namespace

TEST_CASE("atomic_file: writes, replaces, leaves no temporary file") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    io::write_file(path, view(bytes_of("first")));
    CHECK(get_file(path) == bytes_of("first"));
    {
        io::AtomicFile file(path);
        file.write(view(bytes_of("sec")));
        CHECK(get_file(path) == bytes_of("first"));
        file.write(view(bytes_of("ond")));
        CHECK(get_file(path) == bytes_of("first"));
        file.commit();
    }
    CHECK(get_file(path) == bytes_of("second"));
    io::write_file(path, {});
    CHECK(fs::file_size(path) == 0);
    CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("atomic_file: a relative path without a folder") {
    const TempFolder folder;
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    io::write_file("plain", view(bytes_of("x")));
    fs::current_path(before);
    CHECK(get_file(folder / "plain") == bytes_of("x"));
}

TEST_CASE("atomic_file: without commit the old file remains and the temporary file is removed") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    put_file(path, bytes_of("old"));
    {
        io::AtomicFile file(path);
        file.write(view(bytes_of("new")));
        CHECK(folder.names().size() == 2);
    }
    CHECK(get_file(path) == bytes_of("old"));
    CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("atomic_file: the temporary file of a killed writer is reused, that of a live writer is not") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    put_file(folder / "file.tmp", bytes_of("much longer rest of a killed program"));
    {
        io::AtomicFile first(path);
        CHECK(folder.names().size() == 1);
        io::AtomicFile second(path);
        first.write(view(bytes_of("first")));
        second.write(view(bytes_of("second")));
        second.commit();
        CHECK(get_file(path) == bytes_of("second"));
        first.commit();
        CHECK(get_file(path) == bytes_of("first"));
    }
    CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("atomic_file: a hundred concurrent writers leave one complete file") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    std::vector<std::thread> writers;
    for (int i = 0; i < 8; ++i)
        writers.emplace_back([&, i] {
            for (int round = 0; round < 12; ++round)
                io::write_file(path,
                               view(Bytes(static_cast<std::size_t>(1000 + i * 1000), static_cast<std::uint8_t>(i))));
        });
    bool complete = true;
    for (std::thread& writer : writers) writer.join();
    const Bytes content = get_file(path);
    REQUIRE(!content.empty());
    for (const std::uint8_t byte : content) complete = complete && byte == content[0];
    CHECK(complete);
    CHECK(content.size() == 1000U + 1000U * content[0]);
    CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("atomic_file: links and permissions are preserved") {
    const TempFolder folder;
    fs::create_directory(folder / "elsewhere");
    const fs::path real = folder / "elsewhere/real";
    put_file(real, bytes_of("old"));
    ::chmod(real.c_str(), 0640);
    fs::create_symlink("elsewhere/real", folder / "link");
    io::write_file(folder / "link", view(bytes_of("new")));
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(get_file(real) == bytes_of("new"));
    CHECK((fs::status(real).permissions() & fs::perms::mask) == static_cast<fs::perms>(0640));
    // Writing through a dangling link creates its target.
    fs::create_symlink("elsewhere/later", folder / "dangling");
    io::write_file(folder / "dangling", view(bytes_of("x")));
    CHECK(get_file(folder / "elsewhere/later") == bytes_of("x"));
}

TEST_CASE("atomic_file: impossible targets") {
    const TempFolder folder;
    fs::create_directory(folder / "folder");
    CHECK_THROWS_AS(io::write_file(folder / "folder", {}), IoError);
    CHECK_THROWS_AS(io::write_file(folder / "missing/file", {}), IoError);
    put_file(folder / "plain", bytes_of("x"));
    CHECK_THROWS_AS(io::write_file(folder / "plain/file", {}), IoError);
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK_THROWS_AS(io::write_file(folder / "pipe", {}), IoError);
    CHECK(fs::is_fifo(folder / "pipe"));
    // A link in place of the temporary file is not followed.
    fs::create_symlink("plain", folder / "new.tmp");
    io::write_file(folder / "new", view(bytes_of("new")));
    CHECK(get_file(folder / "plain") == bytes_of("x"));
    CHECK(get_file(folder / "new") == bytes_of("new"));
}

TEST_CASE("atomic_file: a full disk (RLIMIT_FSIZE) is an IoError and leaves the old file") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    put_file(path, bytes_of("old"));
    // In a child process, since the limit would affect the other tests; SIGXFSZ keeps its default action, which kills.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_DFL);
        const rlimit limit{1000, 1000};
        int exit_code = ::setrlimit(RLIMIT_FSIZE, &limit) == 0 ? 0 : 1;
        for (int round = 0; round < 2 && exit_code == 0; ++round) {
            try {
                io::write_file(path, view(Bytes(5000, 1)));
                exit_code = 2;
            } catch (const IoError& error) {
                if (error.file() != path.string()) exit_code = 3;
            } catch (...) {
                exit_code = 4;
            }
        }
        sigset_t pending, blocked;
        sigpending(&pending);
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        if (exit_code == 0 && (sigismember(&pending, SIGXFSZ) != 0 || sigismember(&blocked, SIGXFSZ) != 0))
            exit_code = 5;
        ::_exit(exit_code);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(get_file(path) == bytes_of("old"));
    CHECK(folder.names() == std::vector<std::string>{"file"});
}

TEST_CASE("atomic_file: killed at any moment, the old or the new content remains") {
    const TempFolder folder;
    const fs::path path = folder / "file";
    io::write_file(path, view(Bytes(20000, 0)));
    for (int round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (std::uint8_t value = 0;; ++value) io::write_file(path, view(Bytes(20000, value)));
        }
        ::usleep(static_cast<useconds_t>(500 + 700 * round));
        ::kill(child, SIGKILL);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        const Bytes content = get_file(path);
        REQUIRE(content.size() == 20000);
        CHECK(static_cast<std::size_t>(std::ranges::count(content, content[0])) == content.size());
        CHECK(folder.names().size() <= 2);
    }
    io::write_file(path, view(bytes_of("end")));
    CHECK(folder.names() == std::vector<std::string>{"file"});
}
