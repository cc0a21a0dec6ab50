#include "interrupt.hpp"

namespace declivity::train::detail {
namespace {

volatile std::sig_atomic_t noted = 0;

void note(int) { noted = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
    noted = 0;
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one has its previous effect
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptGuard::interrupted() noexcept { return noted != 0; }

}  // namespace declivity::train::detail
