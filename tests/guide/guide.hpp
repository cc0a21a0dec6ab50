// Runtime of the programs that cmake/GuidePage.cmake generates from the guide's pages.
#pragma once

#include <string_view>

namespace guide {

/// A page's code blocks, in order.
using Blocks = void (*)();

/// Registers a page.
class Page {
  public:
    Page(std::string_view name, Blocks blocks);
};

/// Begins a block: standard output is captured from here on.
void block(std::string_view place);
/// Compares the output of the last block with `expected`, in which "..." matches anything.
/// @throws std::runtime_error with both if they differ
void printed(std::string_view place, std::string_view expected);

}  // namespace guide
