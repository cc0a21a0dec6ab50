// Layer 2, private. How values wait until they are needed (lazy_array.hpp).
#pragma once

namespace declivity::ops {

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
