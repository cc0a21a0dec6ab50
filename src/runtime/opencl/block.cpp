#include "block.hpp"

#include "runtime/pending_access.hpp"

namespace declivity::detail {

Block::~Block() {
    delete pending_access.load(std::memory_order_acquire);
    if (after_fork()) {
        let_go(memory);
        let_go(readers_done);
        return;
    }
    if (owner != nullptr) owner->release(*this);
}

}  // namespace declivity::detail
