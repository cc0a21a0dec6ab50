// Layer 1, private. Copies between host and device, and on the device: ranges are checked, nothing is captured.
#pragma once

#include <cstddef>
#include <span>

#include <declivity/runtime/event.hpp>

#include "block.hpp"

namespace declivity::detail {

/// In order with the compute queue.
void enqueue_upload(const Block& block, std::size_t offset, std::span<const std::byte> source);
/// On the transfer queue, after the readers of the block.
Event enqueue_upload_async(const Block& block, std::size_t offset, std::span<const std::byte> source);
/// On the transfer queue from 64 KiB on.
Event enqueue_download(const Buffer& buffer, std::size_t offset, std::span<std::byte> destination);
/// Waits for all reads of a device: after an error the destination may be freed.
void wait_for_reads(const Block& block) noexcept;
void enqueue_copy(const Block& from, std::size_t from_offset, const Block& to, std::size_t to_offset,
                  std::size_t bytes);
void enqueue_fill(const Block& block, std::size_t offset, std::size_t bytes, std::span<const std::byte> pattern);

}  // namespace declivity::detail
