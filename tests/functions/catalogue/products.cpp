// Products as cases of the catalogue.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/products.hpp>
#include <tests/functions/catalogue/case.hpp>
#include <tests/functions/catalogue/host_matrix.hpp>
#include <tests/functions/catalogue/parts.hpp>

namespace declivity::test::catalogue {

void add_products(std::vector<Case>& all) {
    const auto product = [](const HostMatrix& a, const HostMatrix& b) { return a * b; };
    all.push_back(matrix_pair_case("mm", {3, 5}, {5, 7}, mm, product));
    all.push_back(matrix_pair_case("bmm", {2, 3, 5}, {2, 5, 4}, bmm, product));
    all.push_back(matrix_pair_case(
        "mv", {3, 5}, {5, 1},
        [](const Tensor& a, const Tensor& b) {
            return mv(a, b.defined() && b.rank() == 2 ? reshape(b, {b.numel()}) : b);
        },
        product));
    const auto flattened = [](const Tensor& x) { return x.defined() ? reshape(x, {x.numel()}) : x; };
    for (const bool plain : {true, false})
        all.push_back(matrix_pair_case(
            plain ? "dot" : "vdot", {1, 9}, {9, 1},
            [=](const Tensor& a, const Tensor& b) {
                return plain ? dot(flattened(a), flattened(b)) : vdot(flattened(a), flattened(b));
            },
            product));
    all.push_back(matrix_pair_case(
        "outer", {5, 1}, {1, 4}, [=](const Tensor& a, const Tensor& b) { return outer(flattened(a), flattened(b)); },
        product));
    all.push_back(matrix_pair_case("inner", {3, 5}, {4, 5}, inner,
                                   [](const HostMatrix& a, const HostMatrix& b) { return a * transposed(b); }));
    all.push_back(matrix_pair_case("kron", {2, 3}, {3, 2}, kron, [](const HostMatrix& a, const HostMatrix& b) {
        return host_matrix(a.m * b.m, a.n * b.n,
                           [&](auto i, auto j) { return a(i / b.m, j / b.n) * b(i % b.m, j % b.n); });
    }));
    all.push_back(matrix_case("trace", {4, 5}, trace, [](const HostMatrix& x) {
        double sum = 0;
        for (std::int64_t i = 0; i < 4; ++i) sum += x(i, i);
        return Values{sum};
    }));
    all.push_back(matrix_pair_case(
        "cross", {4, 3}, {4, 3}, [](const Tensor& a, const Tensor& b) { return cross(a, b); },
        [](const HostMatrix& a, const HostMatrix& b) {
            return host_matrix(4, 3, [&](auto i, auto j) {
                return a(i, (j + 1) % 3) * b(i, (j + 2) % 3) - a(i, (j + 2) % 3) * b(i, (j + 1) % 3);
            });
        }));
    all.push_back(matrix_pair_case(
        "vecdot", {4, 5}, {4, 5}, [](const Tensor& a, const Tensor& b) { return vecdot(a, b); },
        [](const HostMatrix& a, const HostMatrix& b) {
            const HostMatrix full_product = a * transposed(b);
            return host_matrix(4, 1, [&](auto i, auto) { return full_product(i, i); });
        }));
    all.push_back(matrix_case(
        "vander", {1, 4}, [=](const Tensor& x) { return vander(flattened(x), 3); },
        [](const HostMatrix& x) {
            return host_matrix(4, 3, [&](auto i, auto j) { return std::pow(x(0, i), 2 - j); }).elements;
        }));
    all.push_back(matrix_pair_case(
        "tensordot", {3, 10}, {10, 4},
        [](const Tensor& a, const Tensor& b) {
            const bool plain = a.defined() && b.defined() && a.shape() == Shape{3, 10} && b.shape() == Shape{10, 4};
            return plain ? tensordot(reshape(a, {3, 2, 5}), reshape(b, {2, 5, 4})) : tensordot(a, b, 1);
        },
        product));
    all.push_back(matrix_pair_case(
        "tensordot", {3, 5}, {4, 5},
        [](const Tensor& a, const Tensor& b) { return tensordot(a, b, Dims{1}, Dims{-1}); },
        [](const HostMatrix& a, const HostMatrix& b) { return a * transposed(b); }));
    all.push_back(matrix_pair_case(
        "chain_matmul", {3, 4}, {4, 2},
        [](const Tensor& a, const Tensor& b) {
            return chain_matmul({a, b, a.defined() && b.defined() ? matmul(transpose(b), transpose(a)) : a});
        },
        [](const HostMatrix& a, const HostMatrix& b) { return a * b * transposed(b) * transposed(a); }));
    all.push_back(matrix_pair_case(
        "einsum", {2, 3, 4}, {2, 5, 4},
        [](const Tensor& a, const Tensor& b) {
            return einsum("bij, b k j->bik", {a, b});
        },
        [](const HostMatrix& a, const HostMatrix& b) { return a * transposed(b); }, false));
    all.push_back(matrix_pair_case(
        "einsum", {4, 4}, {4, 3},
        [](const Tensor& a, const Tensor& b) {
            return einsum("ii,ij", {a, b});
        },
        [](const HostMatrix& a, const HostMatrix& b) {
            return host_matrix(1, 3, [&](auto, auto j) {
                double sum = 0;
                for (std::int64_t i = 0; i < 4; ++i) sum += a(i, i) * b(i, j);
                return sum;
            });
        }));
    all.push_back(matrix_pair_case(
        "einsum", {2, 3, 4}, {2, 4, 5},
        [](const Tensor& a, const Tensor& b) {
            return einsum("...ij,...jk,...ij->...ki", {a, b, a});
        },
        [](const HostMatrix& a, const HostMatrix& b) {
            return host_matrix(5, 3, [&](auto k, auto i) {
                double sum = 0;
                for (std::int64_t j = 0; j < 4; ++j) sum += a(i, j) * a(i, j) * b(j, k);
                return sum;
            });
        }));
    const AddmmOptions options{.beta = 0.5, .alpha = 2.0};
    const auto added = [&](const std::string& name, const Shape& x, const Shape& a, const Shape& b,
                           Tensor (*call)(const Tensor&, const Tensor&, const Tensor&, const AddmmOptions&)) {
        all.push_back({.name = name,
                       .inputs = {{x}, {a}, {b}},
                       .call = [=](const Tensors& in) { return call(in[0], in[1], in[2], options); },
                       .reference =
                           [=](const Columns& in, DType) {
                               // Reduced to (batch, m, k) x (batch, k, n), for any number of axes.
                               const bool matrices = a.rank() == 3, vector = b.rank() == 1, outer_one = a.rank() == 1;
                               const std::int64_t batch = matrices ? a[0] : 1, m = outer_one ? a[0] : a[-2];
                               const std::int64_t k = outer_one ? 1 : a[-1], n = vector && !outer_one ? 1 : b[-1];
                               const bool summed = name == "addbmm";
                               Values out(static_cast<std::size_t>((summed ? 1 : batch) * m * n));
                               for (std::size_t i = 0; i < out.size(); ++i) out[i] = 0.5 * in[0][i % in[0].size()];
                               for (std::int64_t at = 0; at < batch; ++at)
                                   for (std::int64_t i = 0; i < m; ++i)
                                       for (std::int64_t j = 0; j < n; ++j)
                                           for (std::int64_t c = 0; c < k; ++c)
                                               out[static_cast<std::size_t>(((summed ? 0 : at) * m + i) * n + j)] +=
                                                   2 * in[1][static_cast<std::size_t>((at * m + i) * k + c)] *
                                                   in[2][static_cast<std::size_t>((at * k + c) * n + j)];
                               return out;
                           },
                       .terms = 30,
                       .sampled = true});
    };
    added("addmm", {3, 4}, {3, 5}, {5, 4}, addmm);
    added("addmm", {4}, {3, 5}, {5, 4}, addmm);
    added("baddbmm", {2, 3, 4}, {2, 3, 5}, {2, 5, 4}, baddbmm);
    added("addbmm", {3, 4}, {2, 3, 5}, {2, 5, 4}, addbmm);
    added("addmv", {3}, {3, 5}, {5}, addmv);
    added("addr", {3, 4}, {3}, {4}, addr);
}

}  // namespace declivity::test::catalogue
