#include "blocking.hpp"

namespace declivity::detail {
namespace {

constinit std::atomic<const BlockingHook*> hook_of_process{nullptr};
constinit std::atomic<bool> blocks_on_launch{false};

}  // namespace

void set_blocking_hook(const BlockingHook* hook) noexcept { hook_of_process.store(hook, std::memory_order_release); }

BlockingScope::BlockingScope(const Device& device)
    : device_(device),
      hook_(hook_of_process.load(std::memory_order_acquire)),
      state_(hook_ != nullptr ? hook_->begin(device) : nullptr) {}

BlockingScope::~BlockingScope() {
    if (hook_ != nullptr) hook_->end(device_, state_);
}

std::atomic<bool>& BlockingScope::on_launch() noexcept { return blocks_on_launch; }

}  // namespace declivity::detail
