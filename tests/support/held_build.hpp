// Blocks a thread in the driver's compiler, to test what other threads can do during a build.
#pragma once

namespace declivity::test {

namespace held_build {
/// Called by each call of clBuildProgram in the program.
void pass();
}  // namespace held_build

/// During its lifetime, the next thread that calls clBuildProgram blocks until it is destroyed; other threads continue.
/// One at a time.
class HeldBuild {
  public:
    HeldBuild();
    ~HeldBuild();
    HeldBuild(const HeldBuild&) = delete;
    HeldBuild& operator=(const HeldBuild&) = delete;

    /// Waits until a thread is blocked.
    void wait() const;
    void let_go() const;
};

}  // namespace declivity::test
