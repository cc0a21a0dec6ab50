// Adapters for PyTorch's products of tensors and linear algebra.
#include <declivity/functions/linalg.hpp>
#include <declivity/functions/products.hpp>
#include <fmt/format.h>

#include "op_db.hpp"

namespace declivity::peers {
namespace {

using A = Arguments;
using Tensors = std::vector<Tensor>;

void add_product_functions(Table& all) {
#define TWO(torch, call) all[torch] = [](A& a) { return Tensors{call(a.tensor(0), a.tensor(1, "other"))}; }
    TWO("mm", mm);
    TWO("bmm", bmm);
    TWO("mv", mv);
    TWO("dot", dot);
    TWO("vdot", vdot);
    TWO("outer", outer);
    TWO("ger", outer);
    TWO("inner", inner);
    TWO("kron", kron);
#undef TWO
#define ADDED(torch, call)                                                                            \
    all[torch] = [](A& a) {                                                                           \
        const AddmmOptions options{.beta = a.scalar(9, "beta", 1), .alpha = a.scalar(9, "alpha", 1)}; \
        return Tensors{call(a.tensor(0), a.tensor(1), a.tensor(2), options)};                         \
    }
    ADDED("addmm", addmm);
    ADDED("addmm.decomposed", addmm);
    ADDED("addbmm", addbmm);
    ADDED("baddbmm", baddbmm);
    ADDED("addmv", addmv);
    ADDED("addr", addr);
#undef ADDED
    all["eye"] = [](A& a) {
        for (const char* name : {"layout", "device", "requires_grad"}) a.ignore(name);
        // One argument per size.
        return Tensors{eye(a.integer(0, "n"), a.integer(1, "m", -1), {a.expected(0).dtype()})};
    };
    all["trace"] = [](A& a) { return Tensors{trace(a.tensor(0))}; };
    all["einsum"] = [](A& a) {
        const std::string equation = a.word(1, "equation", "");
        return Tensors{einsum(equation, a.tensors(0))};
    };
    all["tensordot"] = [](A& a) {
        const Tensor x = a.tensor(0), y = a.tensor(1);
        if (const Json& axes = a.raw(2, "dims"); axes.is_object()) {
            const auto list = [](const Json& json) {
                Dims result;
                for (const Json& item : json["list"]) result.push_back(item.get<std::int64_t>());
                return result;
            };
            return Tensors{tensordot(x, y, list(axes["list"][0]), list(axes["list"][1]))};
        }
        return Tensors{tensordot(x, y, a.integer(2, "dims", 2))};
    };
    all["linalg.multi_dot"] = [](A& a) { return Tensors{chain_matmul(a.tensors(0))}; };
    all["cross"] = [](A& a) {
        const Tensor x = a.tensor(0), y = a.tensor(1);
        std::int64_t axis = 0;
        while (!a.is_given(2, "dim") && x.size(axis) != 3) ++axis;
        return Tensors{cross(x, y, a.integer(2, "dim", axis))};
    };
    all["linalg.cross"] = [](A& a) { return Tensors{cross(a.tensor(0), a.tensor(1), a.integer(2, "dim", -1))}; };
    all["linalg.vecdot"] = [](A& a) { return Tensors{vecdot(a.tensor(0), a.tensor(1), a.integer(2, "dim", -1))}; };
    all["linalg.vander"] = [](A& a) {
        const Tensor x = a.tensor(0);
        const std::int64_t columns = a.integer(1, "N", -1);
        return Tensors{vander(x.rank() == 0 ? reshape(x, {1}) : x, columns, true)};
    };
}

/// Columns with the signs of PyTorch's, as constants.
Tensor signs_for(const Tensor& ours, const Tensor& expected) {
    const NoGrad no_grad;
    return where(sum(ours.detach() * expected.detach(), {-2}, true) < 0, full({}, -1, {ours.dtype()}),
                 full({}, 1, {ours.dtype()}));
}

/// The first columns of `ours`, and PyTorch's result for the rest, which is not unique.
Tensor completed(const Tensor& ours, const Tensor& expected) {
    return ours.size(-1) == expected.size(-1)
               ? ours
               : concat({ours, slice(expected, -1, ours.size(-1), expected.size(-1))}, -1);
}

Tensors svd_of(A& a, bool full, bool as_vh) {
    const auto [u, s, vh] = linalg::svd(a.tensor(0), full);
    const std::int64_t k = s.size(-1);
    const Tensor expected_u = a.expected(0), expected_v = as_vh ? transpose(a.expected(2)) : a.expected(2);
    const Tensor left = slice(u, -1, 0, k), right = transpose(slice(vh, -2, 0, k));
    const Tensor signs = k == 0 ? zeros({1}, {u.dtype()}) : signs_for(left, slice(expected_u, -1, 0, k));
    const Tensor all_u = completed(left * signs, expected_u), all_v = completed(right * signs, expected_v);
    return {all_u, s, as_vh ? transpose(all_v) : all_v};
}

void add_factorisations(Table& all) {
    all["linalg.cholesky"] =
        all["cholesky"] = [](A& a) { return Tensors{linalg::cholesky(a.tensor(0), a.flag(1, "upper", false))}; };
    all["linalg.cholesky_ex"] = [](A& a) {
        a.ignore("check_errors");
        return tensors_of(linalg::cholesky_ex(a.tensor(0), a.flag(1, "upper", false)));
    };
    all["cholesky_solve"] = [](A& a) {
        const bool upper = a.flag(2, "upper", false);
        a.compare_triangle(1, upper);
        return Tensors{linalg::cholesky_solve(a.tensor(0), a.tensor(1), upper)};
    };
    all["cholesky_inverse"] = [](A& a) {
        const bool upper = a.flag(1, "upper", false);
        a.compare_triangle(0, upper);
        return Tensors{linalg::cholesky_inverse(a.tensor(0), upper)};
    };
    const auto pivoted = [](A& a) {
        if (!a.flag(1, "pivot", true)) throw UnsupportedSample("no pivots");
    };
    all["linalg.lu_factor"] = [pivoted](A& a) {
        pivoted(a);
        return tensors_of(linalg::lu_factor(a.tensor(0)));
    };
    all["linalg.lu_factor_ex"] = [pivoted](A& a) {
        pivoted(a);
        a.ignore("check_errors");
        return tensors_of(linalg::lu_factor_ex(a.tensor(0)));
    };
    all["linalg.lu"] = [pivoted](A& a) {
        pivoted(a);
        return tensors_of(linalg::lu(a.tensor(0)));
    };
    all["lu"] = [pivoted](A& a) {
        pivoted(a);
        const bool info = a.flag(2, "get_infos", false);
        const Tensors result = tensors_of(linalg::lu_factor_ex(a.tensor(0)));
        return info ? result : Tensors{result[0], result[1]};
    };
    all["lu_unpack"] = [](A& a) { return tensors_of(linalg::lu_unpack(a.tensor(0), a.tensor(1))); };
    all["linalg.lu_solve"] = [](A& a) {
        return Tensors{linalg::lu_solve(a.tensor(0), a.tensor(1), a.tensor(2), a.flag(9, "left", true),
                                        a.flag(9, "adjoint", false))};
    };
    all["lu_solve"] = [](A& a) { return Tensors{linalg::lu_solve(a.tensor(1), a.tensor(2), a.tensor(0))}; };
    all["linalg.qr"] = [](A& a) { return tensors_of(linalg::qr(a.tensor(0), a.word(1, "mode", "reduced"))); };
    all["qr"] = [](A& a) {
        return tensors_of(linalg::qr(a.tensor(0), a.flag(1, "some", true) ? "reduced" : "complete"));
    };
    all["linalg.eigh"] = [](A& a) {
        const auto [w, v] = linalg::eigh(a.tensor(0), a.word(1, "UPLO", "L"));
        return Tensors{w, w.numel() == 0 ? v : v * signs_for(v, a.expected(1))};
    };
    all["linalg.eigvalsh"] = [](A& a) { return Tensors{linalg::eigvalsh(a.tensor(0), a.word(1, "UPLO", "L"))}; };
    all["linalg.svd"] = [](A& a) { return svd_of(a, a.flag(1, "full_matrices", true), true); };
    all["svd"] = [](A& a) {
        if (!a.flag(2, "compute_uv", true)) throw UnsupportedSample("no vectors");
        return svd_of(a, !a.flag(1, "some", true), false);
    };
    all["linalg.svdvals"] = [](A& a) { return Tensors{linalg::svdvals(a.tensor(0))}; };
}

void add_equations(Table& all) {
    all["linalg.solve_triangular"] = [](A& a) {
        return Tensors{linalg::solve_triangular(a.tensor(0), a.tensor(1),
                                                {.upper = a.flag(9, "upper", false),
                                                 .left = a.flag(9, "left", true),
                                                 .unitriangular = a.flag(9, "unitriangular", false)})};
    };
    all["triangular_solve"] = [](A& a) {
        const Tensor b = a.tensor(0), matrix = a.tensor(1);
        const bool upper = a.flag(2, "upper", true), transposed = a.flag(3, "transpose", false);
        const bool unit = a.flag(4, "unitriangular", false);
        const Tensor x = linalg::solve_triangular(transposed ? transpose(matrix) : matrix, b,
                                                  {.upper = upper != transposed, .unitriangular = unit});
        // The second result is a copy of the matrix.
        return Tensors{x, expand(matrix, a.expected(1).shape())};
    };
    all["linalg.solve"] = [](A& a) {
        return Tensors{linalg::solve(a.tensor(0), a.tensor(1), a.flag(9, "left", true))};
    };
    all["linalg.solve_ex"] = [](A& a) {
        a.ignore("check_errors");
        return tensors_of(linalg::solve_ex(a.tensor(0), a.tensor(1), a.flag(9, "left", true)));
    };
    all["linalg.inv"] = all["inverse"] = [](A& a) { return Tensors{linalg::inv(a.tensor(0))}; };
    all["linalg.inv_ex"] = [](A& a) {
        a.ignore("check_errors");
        return tensors_of(linalg::inv_ex(a.tensor(0)));
    };
    all["linalg.lstsq"] = all["linalg.lstsq.grad_oriented"] = [](A& a) {
        a.ignore("driver");
        a.ignore("rcond");
        const auto result = linalg::lstsq(a.tensor(0), a.tensor(1));
        // PyTorch's drivers may return no residuals.
        Tensors results{result.solution, a.expected(1).numel() == 0 ? a.expected(1) : result.residuals};
        a.compare_first();
        while (a.has_expected(results.size())) results.push_back(Tensor(a.expected(results.size())));
        return results;
    };
    all["linalg.tensorinv"] = [](A& a) { return Tensors{linalg::tensorinv(a.tensor(0), a.integer(1, "ind", 2))}; };
    all["linalg.tensorsolve"] = [](A& a) {
        return Tensors{
            linalg::tensorsolve(a.tensor(0), a.tensor(1), a.is_given(2, "dims") ? a.dims(2, "dims") : Dims())};
    };
    const auto options = [](A& a) {
        linalg::RankOptions result;
        const auto number = [&](const char* name) -> std::optional<double> {
            if (!a.is_given(9, name)) return std::nullopt;
            if (const Json& json = a.raw(9, name); json.is_object() && json.contains("tensor")) {
                if (!json["shape"].empty()) throw UnsupportedSample("tolerances for each matrix");
                return a.tensor(9, name).to(DType::f64).item<double>();
            }
            return a.number(9, name);
        };
        result.atol = number("atol");
        result.rtol = number("rtol");
        result.hermitian = a.flag(9, "hermitian", false);
        return result;
    };
    all["linalg.pinv"] = [options](A& a) { return Tensors{linalg::pinv(a.tensor(0), options(a))}; };
    all["linalg.pinv.hermitian"] = [options](A& a) {
        // The samples are not symmetric, but PyTorch's formula assumes symmetry.
        a.compare_values_alone();
        return Tensors{linalg::pinv(a.tensor(0), options(a))};
    };
    all["pinverse"] = [](A& a) { return Tensors{linalg::pinv(a.tensor(0), {.rtol = a.number(1, "rcond", 1e-15)})}; };
    all["linalg.pinv.singular"] = [](A& a) {
        a.loosen(4);  // the product is rounded, too
        return Tensors{linalg::pinv(matmul(a.tensor(0), transpose(a.tensor(1))))};
    };
    all["linalg.matrix_rank"] = all["linalg.matrix_rank.hermitian"] = [options](A& a) {
        return Tensors{linalg::matrix_rank(a.tensor(0), options(a))};
    };
    all["linalg.det"] = all["det"] = [](A& a) { return Tensors{linalg::det(a.tensor(0))}; };
    all["linalg.slogdet"] = all["slogdet"] = [](A& a) { return tensors_of(linalg::slogdet(a.tensor(0))); };
    all["logdet"] = [](A& a) { return Tensors{linalg::logdet(a.tensor(0))}; };
    all["linalg.matrix_power"] = [](A& a) { return Tensors{linalg::matrix_power(a.tensor(0), a.integer(1, "n"))}; };
    all["matrix_exp"] = [](A& a) { return Tensors{linalg::matrix_exp(a.tensor(0))}; };
}

linalg::NormOrder order_of(A& a, std::size_t position, const char* name, const linalg::NormOrder& default_value) {
    if (!a.is_given(position, name)) return default_value;
    const Json& json = a.raw(position, name);
    if (json.is_string()) return json.get<std::string>() == "nuc" ? linalg::NormOrder("nuc") : linalg::NormOrder("fro");
    return a.number(position, name);
}

void add_norms(Table& all) {
    all["linalg.norm"] = all["linalg.norm.subgradients_at_zero"] = [](A& a) {
        const auto order = order_of(a, 1, "ord", {});
        const Dims axes = a.is_given(2, "dim") ? a.dims(2, "dim") : Dims();
        return Tensors{linalg::norm(a.tensor(0), order, axes, a.flag(3, "keepdim", false))};
    };
    for (const char* name : {"norm", "norm.fro", "norm.inf", "norm.nuc"})
        all[name] = [](A& a) {
            const auto order = order_of(a, 1, "p", 2);
            const Dims axes = a.is_given(2, "dim") ? a.dims(2, "dim") : Dims();
            const bool keep = a.flag(3, "keepdim", false);
            const Tensor x = a.tensor(0);
            if (order.number()) return Tensors{norm(x, *order.number(), axes, keep)};
            if (order.word() == "fro") return Tensors{norm(x, 2, axes, keep)};
            return Tensors{linalg::matrix_norm(x, order, axes.rank() == 0 ? Dims{-2, -1} : axes, keep)};
        };
    all["linalg.matrix_norm"] = [](A& a) {
        const auto order = order_of(a, 1, "ord", "fro");
        return Tensors{
            linalg::matrix_norm(a.tensor(0), order, a.dims(2, "dim", Dims{-2, -1}), a.flag(3, "keepdim", false))};
    };
    all["linalg.vector_norm"] = [](A& a) {
        return Tensors{linalg::vector_norm(a.tensor(0), a.number(1, "ord", 2),
                                           a.is_given(2, "dim") ? a.dims(2, "dim") : Dims(),
                                           a.flag(3, "keepdim", false))};
    };
    all["linalg.cond"] = [](A& a) { return Tensors{linalg::cond(a.tensor(0), order_of(a, 1, "p", {}))}; };
}

void add_linalg(Table& all) {
    add_product_functions(all);
    add_factorisations(all);
    add_equations(all);
    add_norms(all);
}

const Adapters linalg_adapters{add_linalg};

}  // namespace
}  // namespace declivity::peers
