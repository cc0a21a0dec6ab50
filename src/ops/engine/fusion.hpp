// Floor 2, private. How values wait until they are needed (value.hpp).
#pragma once

#include <mutex>

#include <declivity/ops/value.hpp>

namespace declivity::ops {

/// Held while values are looked at to be computed. One for all: a value may be inlined into another while a thread asks
/// for it.
std::recursive_mutex& values_mutex();

/// As DECLIVITY_FUSION, for all threads, until its end.
class FusionScope {
  public:
    explicit FusionScope(bool on);
    ~FusionScope();
    FusionScope(const FusionScope&) = delete;
    FusionScope& operator=(const FusionScope&) = delete;

  private:
    bool before_;
};

}  // namespace declivity::ops
