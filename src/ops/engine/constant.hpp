// Floor 2, private. Copies of constant operands in another order, cached.
#pragma once

#include <memory>
#include <string>

#include <declivity/ops/view.hpp>
#include <fmt/format.h>

#include "runtime/recorder.hpp"

namespace declivity::ops {

/// What `make` gives for an operand. If it is `constant`, it is cached with the operand's memory until that
/// is marked as written (Buffer::keep). `name` says what is made, with all that it depends on beside the operand.
template <class Make>
View made_once(const View& operand, bool constant, const std::string& name, Make make) {
    Recorder* const recorder = Recorder::current();
    if (!constant || (recorder != nullptr && recorder->varies(operand.buffer))) return make();
    if (recorder != nullptr) recorder->relies_on(operand.buffer);
    const RecordingPause once;
    std::string key = fmt::format("{} {} {} {}", name, name_of(operand.dtype), operand.offset, operand.shape.str());
    for (int i = 0; i < operand.rank(); ++i) key += fmt::format(" {}", operand.strides[i]);
    if (const auto kept = operand.buffer.kept(key)) return *std::static_pointer_cast<const View>(kept);
    const std::uint64_t version = operand.buffer.version();
    const View made = make();
    operand.buffer.keep(key, std::make_shared<const View>(made), version);
    return made;
}

}  // namespace declivity::ops
