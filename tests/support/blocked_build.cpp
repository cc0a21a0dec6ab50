#include "tests/support/blocked_build.hpp"

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
    static auto* instance = new Gate;  // never destroyed: calls occur after main()
    return *instance;
}

}  // namespace

void blocked_build::pass() {
    Gate& state = gate();
    std::unique_lock lock(state.mutex);
    if (!state.closed || state.reached) return;
    state.reached = true;
    state.changed.notify_all();
    state.changed.wait(lock, [&] { return !state.closed; });
}

BlockedBuild::BlockedBuild() {
    const std::scoped_lock lock(gate().mutex);
    gate().closed = true;
    gate().reached = false;
}
BlockedBuild::~BlockedBuild() { release(); }

void BlockedBuild::wait() const {
    std::unique_lock lock(gate().mutex);
    gate().changed.wait(lock, [] { return gate().reached; });
}

void BlockedBuild::release() const {
    const std::scoped_lock lock(gate().mutex);
    gate().closed = false;
    gate().changed.notify_all();
}

}  // namespace declivity::test
