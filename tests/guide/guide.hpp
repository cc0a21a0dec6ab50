// What the programs that cmake/GuidePage.cmake makes of the guide's pages call.
#pragma once

#include <string_view>

namespace guide {

/// A page's blocks, in order.
using Blocks = void (*)();

/// Registers a page.
class Page {
  public:
    Page(std::string_view name, Blocks blocks);
};

/// A block begins: what is written to standard output from now on is its own.
void block(std::string_view place);
/// What the last block has written to standard output must be this, "..." standing for anything.
/// @throws std::runtime_error with both where it is not
void printed(std::string_view place, std::string_view wanted);

}  // namespace guide
