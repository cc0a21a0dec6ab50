#include "interrupt.hpp"

namespace declivity::train::detail {
namespace {

volatile std::sig_atomic_t interrupt_received = 0;

void on_interrupt(int) { interrupt_received = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
    interrupt_received = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one has its previous effect
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &previous_action_);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action_, nullptr); }

bool InterruptGuard::interrupted() noexcept { return interrupt_received != 0; }

}  // namespace declivity::train::detail
