#include "work_split.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace declivity::ops {
namespace {
thread_local std::optional<KernelStyle> forced;
}

KernelStyle kernel_style_of(const Device& device) { return forced ? *forced : device.kernel_style(); }
KernelStyleScope::KernelStyleScope(KernelStyle style) { forced = style; }
KernelStyleScope::~KernelStyleScope() { forced.reset(); }

double GroupGrid::cycles(std::int64_t units) const {
    constexpr double late = 60'000;  // waking another thread takes some 15 us
    constexpr std::int64_t max_units = 16;
    const std::int64_t count = across * down;
    const double row = static_cast<double>(across - 1) * inner + last_column;
    // Time until the end of the first groups.
    const auto sum = [&](std::int64_t groups) {
        const std::int64_t rows = groups / across, more = groups % across;
        const double full = static_cast<double>(std::min(rows, down - 1)) * row +
                            (rows == down ? static_cast<double>(across - 1) * last_row + corner : 0);
        return full + static_cast<double>(more) * (rows == down - 1 ? last_row : inner);
    };
    const auto part = [&](std::int64_t left) { return (left + units - 1) / units; };
    if (units > max_units) return std::max(sum(part(count)), sum(count) / static_cast<double>(units)) + late;
    std::array<double, max_units> free{};
    std::fill(free.begin() + 1, free.begin() + units, late);
    double last = 0;
    for (std::int64_t at = 0; at < count;) {
        double& unit = *std::min_element(free.begin(), free.begin() + units);
        const std::int64_t next = at + part(count - at);
        last = std::max(last, unit += sum(next) - sum(at));
        at = next;
    }
    return last;
}

}  // namespace declivity::ops
