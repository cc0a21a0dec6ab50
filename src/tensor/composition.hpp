// Floor 3, private. Functions that are compositions of others first, and have kernels that are faster.
#pragma once

namespace declivity::detail {

/// While one lives, functions of this thread that have a composition are that, without kernels of their own: what the
/// kernels are tested against.
class CompositionScope {
  public:
    CompositionScope();
    ~CompositionScope();
    CompositionScope(const CompositionScope&) = delete;
    CompositionScope& operator=(const CompositionScope&) = delete;

  private:
    bool before_;
};

/// Whether one lives.
bool by_composition();

}  // namespace declivity::detail
