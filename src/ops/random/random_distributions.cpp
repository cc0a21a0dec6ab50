#include <declivity/ops/random_distributions.hpp>

#include <algorithm>

#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

/// @param per_block numbers of the call's type in a block
void draw(std::string_view function, const char* stem, const View& parameter, const RandomCall& random,
          std::int64_t numbers, std::int64_t per_block, Defines defines, const View& out) {
    require_real(function, "the parameter", parameter.dtype);
    require_dense(function, "the parameter", parameter);
    require_dense(function, "out", out);
    require_alike(function, "the parameter", parameter, "out", out);
    require_shape(function, "out", out, parameter.shape);
    const WorkScope work(stem, work_each(200, parameter, out));
    if (out.numel() == 0) return;
    defines.set("BLOCKS", numbers / per_block);
    const Kernel kernel(out.device(), {std::string(stem) + ".cl", stem, defines});
    const std::size_t group = item_group(kernel);
    // The skipped numbers may end within a block; the call then uses one block more.
    const std::int64_t first = random.offset + ceil_div(random.skip, per_block);
    launch(kernel, {.global = {round_up(to_size(out.numel()), group)}, .local = {group}},
           {out.numel(), parameter.argument(), out.argument(), random.state.argument(), first});
}

}  // namespace

void random_gamma(std::string_view function, const View& concentration, bool logarithm, const RandomCall& random,
                  const View& out) {
    Defines defines = real_defines(out.dtype);
    defines.set("LOG", logarithm ? 1 : 0);
    draw(function, "random_gamma", concentration, random, kRandomGammaNumbers, out.dtype == DType::f64 ? 2 : 4, defines,
         out);
}

void random_poisson(std::string_view function, const View& rate, const RandomCall& random, const View& out) {
    draw(function, "random_poisson", rate, random, kRandomPoissonNumbers, 4, real_defines(out.dtype), out);
}

}  // namespace declivity::ops
