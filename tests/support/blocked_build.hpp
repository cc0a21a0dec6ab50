// Blocks a thread in the driver's compiler, to test what other threads can do during a build.
#pragma once

namespace declivity::test {

namespace blocked_build {
/// Called by each call of clBuildProgram in the program.
void pass();
}  // namespace blocked_build

/// During its lifetime, the next thread that calls clBuildProgram blocks until it is destroyed; other threads continue.
/// One at a time.
class BlockedBuild {
  public:
    BlockedBuild();
    ~BlockedBuild();
    BlockedBuild(const BlockedBuild&) = delete;
    BlockedBuild& operator=(const BlockedBuild&) = delete;

    /// Waits until a thread is blocked.
    void wait() const;
    void release() const;
};

}  // namespace declivity::test
