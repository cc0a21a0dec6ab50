// The time from the start of a process to the end of its first training step.
#pragma once

namespace declivity::bench {

/// What the child process of the suite `start` does: one step of mnist, a line when it is done, then the caches are
/// filled.
int first_step();

}  // namespace declivity::bench
