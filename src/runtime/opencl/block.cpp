#include "block.hpp"

#include "runtime/pending_access.hpp"

namespace declivity::detail {

Block::~Block() {
    delete pending_access.load(std::memory_order_acquire);
    if (after_fork()) {
        abandon_after_fork(memory);
        abandon_after_fork(readers_done);
        return;
    }
    if (owner != nullptr) owner->release(*this);
}

}  // namespace declivity::detail
