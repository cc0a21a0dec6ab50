#include "block.hpp"

namespace declivity::detail {

Block::~Block() {
    if (after_fork()) {
        let_go(memory);
        let_go(readers_done);
        return;
    }
    if (owner != nullptr) owner->release(*this);
}

}  // namespace declivity::detail
