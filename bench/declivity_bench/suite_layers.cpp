// Normalisation of rows and groups, resizing, and linear algebra, compared with PyTorch.
#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/tensor/creation.hpp>

#include "function_suites.hpp"

namespace declivity::bench {
namespace {

using Tensors = std::vector<Tensor>;

/// Adds the forward case and the same case with backward.
void add_both(std::vector<FunctionCase>& all, FunctionCase test_case) {
    const Shape out = [&] {
        const NoGrad none;
        return test_case.call(test_case.inputs).shape();
    }();
    all.push_back(test_case);
    test_case.name += ", backward";
    test_case.inputs.push_back(uniform(out, -1, 1));
    test_case.bytes *= 2.5;
    test_case.backward = true;
    all.push_back(std::move(test_case));
}

std::vector<FunctionCase> norms() {
    std::vector<FunctionCase> all;
    for (const Shape& shape : {Shape{2048, 768}, Shape{8192, 128}, Shape{256, 64}}) {
        const double bytes = 8 * static_cast<double>(shape.numel());
        const std::string size = shape.str();
        const Tensor w = rand({shape[1]}), b = rand({shape[1]});
        const std::string width = std::to_string(shape[1]);
        add_both(all, {"layer_norm " + size,
                       {randn(shape), w, b},
                       [n = shape[1]](const Tensors& x) { return layer_norm(x[0], {n}, x[1], x[2]); },
                       "F.layer_norm(x[0], (" + width + ",), x[1], x[2])",
                       bytes});
        add_both(all, {"rms_norm " + size,
                       {randn(shape), w},
                       [n = shape[1]](const Tensors& x) { return rms_norm(x[0], {n}, x[1], 1e-6); },
                       "F.rms_norm(x[0], (" + width + ",), x[1], 1e-6)",
                       bytes});
    }
    for (const Shape& shape : {Shape{16, 64, 56, 56}, Shape{16, 256, 14, 14}}) {
        const double bytes = 8 * static_cast<double>(shape.numel());
        const Tensor w = rand({shape[1]}), b = rand({shape[1]});
        add_both(all, {"group_norm 32 " + shape.str(),
                       {randn(shape), w, b},
                       [](const Tensors& x) { return group_norm(x[0], 32, x[1], x[2]); },
                       "F.group_norm(x[0], 32, x[1], x[2])",
                       bytes});
        add_both(all, {"instance_norm " + shape.str(),
                       {randn(shape), w, b},
                       [](const Tensors& x) { return instance_norm(x[0], x[1], x[2]); },
                       "F.instance_norm(x[0], weight=x[1], bias=x[2])",
                       bytes});
    }
    add_both(all, {"local_response_norm 5 [16, 64, 28, 28]",
                   {randn({16, 64, 28, 28})},
                   [](const Tensors& x) { return local_response_norm(x[0], 5); },
                   "F.local_response_norm(x[0], 5)",
                   8.0 * 16 * 64 * 784});
    return all;
}

std::vector<FunctionCase> resizes() {
    std::vector<FunctionCase> all;
    const auto add = [&](const std::string& name, const Shape& from, const InterpolateOptions& options,
                         const std::string& python) {
        const Shape to = interpolate(zeros(from), options).shape();
        add_both(all, {name,
                       {rand(from)},
                       [options](const Tensors& x) { return interpolate(x[0], options); },
                       "F.interpolate(x[0], " + python + ")",
                       4 * static_cast<double>(from.numel() + to.numel())});
    };
    const Shape image{8, 16, 64, 64};
    add("nearest x2", image, {.scale_factor = {2}, .mode = "nearest"}, "scale_factor=2, mode='nearest'");
    add("bilinear x2", image, {.scale_factor = {2}, .mode = "bilinear"}, "scale_factor=2, mode='bilinear'");
    add("bilinear to 224 of 3 channels", {8, 3, 320, 400}, {.size = {224, 224}, .mode = "bilinear"},
        "size=(224, 224), mode='bilinear'");
    add("bilinear to 224, antialias", {8, 3, 320, 400}, {.size = {224, 224}, .mode = "bilinear", .antialias = true},
        "size=(224, 224), mode='bilinear', antialias=True");
    add("bicubic x2", image, {.scale_factor = {2}, .mode = "bicubic"}, "scale_factor=2, mode='bicubic'");
    add("area to 30", image, {.size = {30, 30}, .mode = "area"}, "size=(30, 30), mode='area'");
    add("trilinear x2", {2, 8, 16, 16, 16}, {.scale_factor = {2}, .mode = "trilinear"},
        "scale_factor=2, mode='trilinear'");
    add_both(all, {"grid_sample bilinear",
                   {rand({8, 16, 64, 64}), uniform({8, 64, 64, 2}, -1, 1)},
                   [](const Tensors& x) { return grid_sample(x[0], x[1]); },
                   "F.grid_sample(x[0], x[1], align_corners=False)",
                   8.0 * 8 * 16 * 4096});
    return all;
}

std::vector<FunctionCase> linear_algebra() {
    std::vector<FunctionCase> all;
    for (const auto& [batch, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{256, 16}, {64, 64}, {16, 128}}) {
        const double cubic = static_cast<double>(batch * n * n * n);
        const std::string size = " " + std::to_string(batch) + " x " + std::to_string(n);
        const Tensor a = randn({batch, n, n});
        const Tensor definite = matmul(a, transpose(a)) + eye(n) * static_cast<double>(n);
        const Tensor b = randn({batch, n, 8}), well_conditioned = a + eye(n) * static_cast<double>(n);
        all.push_back({"cholesky" + size,
                       {definite},
                       [](const Tensors& x) { return linalg::cholesky(x[0]); },
                       "torch.linalg.cholesky(x[0])",
                       0,
                       cubic / 3});
        all.push_back({"solve_triangular" + size,
                       {tril(definite), b},
                       [](const Tensors& x) { return linalg::solve_triangular(x[0], x[1], {.upper = false}); },
                       "torch.linalg.solve_triangular(x[0], x[1], upper=False)",
                       0,
                       static_cast<double>(batch * n * n * 8)});
        all.push_back({"solve" + size,
                       {well_conditioned, b},
                       [](const Tensors& x) { return linalg::solve(x[0], x[1]); },
                       "torch.linalg.solve(x[0], x[1])",
                       0,
                       cubic * 2 / 3});
        all.push_back({"inv" + size,
                       {well_conditioned},
                       [](const Tensors& x) { return linalg::inv(x[0]); },
                       "torch.linalg.inv(x[0])",
                       0,
                       cubic * 2});
        all.push_back({"det" + size,
                       {well_conditioned * (1.0 / static_cast<double>(n))},
                       [](const Tensors& x) { return linalg::det(x[0]); },
                       "torch.linalg.det(x[0])",
                       0,
                       cubic * 2 / 3,
                       false,
                       1,
                       1e-3});
        all.push_back({"qr" + size,
                       {a},
                       [](const Tensors& x) { return abs(linalg::qr(x[0]).r); },
                       "torch.linalg.qr(x[0])[1].abs()",
                       0,
                       cubic * 8 / 3,
                       false,
                       1,
                       1e-3});
        all.push_back({"eigh" + size,
                       {definite},
                       [](const Tensors& x) { return linalg::eigh(x[0]).values; },
                       "torch.linalg.eigh(x[0])[0]",
                       0,
                       cubic * 9,
                       false,
                       1,
                       1e-3});
        all.push_back({"svd" + size,
                       {a},
                       [](const Tensors& x) { return linalg::svd(x[0], false).s; },
                       "torch.linalg.svd(x[0], full_matrices=False)[1]",
                       0,
                       cubic * 20,
                       false,
                       1,
                       1e-3});
    }
    all.push_back({"einsum bhid,bhjd->bhij",
                   {randn({8, 8, 128, 64}), randn({8, 8, 128, 64})},
                   [](const Tensors& x) {
                       return einsum("bhid,bhjd->bhij", {x[0], x[1]});
                   },
                   "torch.einsum('bhid,bhjd->bhij', x[0], x[1])",
                   0,
                   2.0 * 64 * 128 * 128 * 64});
    all.push_back({"bmm 64 x 128",
                   {randn({64, 128, 128}), randn({64, 128, 128})},
                   [](const Tensors& x) { return bmm(x[0], x[1]); },
                   "torch.bmm(x[0], x[1])",
                   0,
                   2.0 * 64 * 128 * 128 * 128});
    return all;
}

const Suite norm_suite("norm", "normalisation of rows, groups and samples, compared with PyTorch",
                       [](Report& report) { time_functions(report, "norm of rows and groups", norms); });
const Suite resize_suite("resize", "resizing of images, compared with PyTorch",
                         [](Report& report) { time_functions(report, "resize", resizes); });
const Suite linalg_suite("linalg", "linear algebra on matrices up to 128 x 128, compared with PyTorch",
                         [](Report& report) { time_functions(report, "linalg", linear_algebra); });

}  // namespace
}  // namespace declivity::bench
