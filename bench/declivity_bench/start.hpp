// Startup time: from the start of a process to the end of its first training step.
#pragma once

namespace declivity::bench {

/// The child process of the suite `start`: one training step of mnist, prints a line when it is done, then fills the
/// caches.
int first_step();

}  // namespace declivity::bench
