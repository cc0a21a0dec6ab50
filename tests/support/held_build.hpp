// Holds a thread within the driver's compiler, so that tests see what others can do meanwhile.
#pragma once

namespace declivity::test {

namespace held_build {
/// Called by each call of clBuildProgram of the program's.
void pass();
}  // namespace held_build

/// While one lives, the next thread that calls clBuildProgram waits there until it ends; others pass. One at a time.
class HeldBuild {
  public:
    HeldBuild();
    ~HeldBuild();
    HeldBuild(const HeldBuild&) = delete;
    HeldBuild& operator=(const HeldBuild&) = delete;

    /// Waits until a thread is there.
    void wait() const;
    void let_go() const;
};

}  // namespace declivity::test
