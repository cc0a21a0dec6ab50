// Layer 2, private. Enables and disables lazy evaluation (lazy_array.hpp).
#pragma once

namespace declivity::ops {

/// Overrides DECLIVITY_FUSION for all threads while an instance lives.
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
