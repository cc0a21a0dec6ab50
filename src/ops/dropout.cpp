#include <declivity/ops/dropout.hpp>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "random_launch.hpp"
#include "real_arguments.hpp"
#include "work.hpp"

namespace declivity::ops {

void dropout(const View& x, const View& out, double probability, const RandomCall& random) {
    require_floating("dropout", "x", x);
    require_dense("dropout", "x", x);
    require_dense("dropout", "out", out);
    require_shape("dropout", "out", out, x.shape);
    require_alike("dropout", "x", x, "out", out);
    if (!(probability >= 0 && probability <= 1)) throw ValueError(fmt::format("dropout: wants a probability in [0, 1], got {}", probability));
    if (x.numel() == 0) return;
    const bool in_place = x.buffer == out.buffer && x.offset == out.offset;
    Defines defines = real_defines(x.dtype);
    defines.set("IN_PLACE", in_place ? "1" : "0");
    const Kernel kernel(x.device(), {"dropout.cl", "dropout", defines});
    const RandomLaunch cut(out);
    const RealArguments reals(x.dtype, {probability, probability < 1 ? 1 / (1 - probability) : 0});
    const WorkScope work("dropout", work_each(1, x, out));
    if (in_place) launch(kernel, cut.range, {x.numel(), cut.chunk, out.argument(), random.state.argument(), random.offset, reals[0], reals[1]});
    else launch(kernel, cut.range, {x.numel(), cut.chunk, x.argument(), out.argument(), random.state.argument(), random.offset, reals[0], reals[1]});
}

}  // namespace declivity::ops
