#include "tests/support/held_build.hpp"

#include <condition_variable>
#include <mutex>

namespace declivity::test {
namespace {

struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool closed = false, reached = false;
};
Gate& gate() {
    static auto* one = new Gate;  // never destroyed: calls occur after main()
    return *one;
}

}  // namespace

void held_build::pass() {
    Gate& one = gate();
    std::unique_lock lock(one.mutex);
    if (!one.closed || one.reached) return;
    one.reached = true;
    one.changed.notify_all();
    one.changed.wait(lock, [&] { return !one.closed; });
}

HeldBuild::HeldBuild() {
    const std::scoped_lock lock(gate().mutex);
    gate().closed = true;
    gate().reached = false;
}
HeldBuild::~HeldBuild() { let_go(); }

void HeldBuild::wait() const {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return gate().reached; });
}

void HeldBuild::let_go() const {
    const std::scoped_lock lock(gate().mutex);
    gate().closed = false;
    gate().changed.notify_all();
}

}  // namespace declivity::test
