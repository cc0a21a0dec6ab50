// einsum: operands are permuted to a common order of indices and contracted pairwise.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <declivity/functions/functions.hpp>
#include <declivity/functions/products.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/function_call.hpp>
#include <fmt/format.h>

#include "tensor/reduced_precision.hpp"

namespace declivity {
namespace {

constexpr int kEllipsis = 256;  // labels from here on are the axes of "...", counted from the last one

using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::ranges::find(labels, label) != labels.end(); }

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
    throw ValueError(fmt::format("einsum: {} in \"{}\"", why, equation));
}

/// Letters of one operand, with -1 for "...".
Labels parse_term(std::string_view equation, std::string_view term) {
    Labels labels;
    for (std::size_t i = 0; i < term.size(); ++i) {
        const char c = term[i];
        if (c == ' ') continue;
        if (c == '.') {
            if (term.substr(i, 3) != "..." || has(labels, -1)) refuse(equation, "expected \"...\" once per operand");
            labels.push_back(-1);
            i += 2;
        } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
            labels.push_back(c);
        } else {
            refuse(equation, fmt::format("expected letters, got '{}'", c));
        }
    }
    return labels;
}

/// Notation of a label in the equation.
std::string label_name(int label) { return label < kEllipsis ? std::string(1, static_cast<char>(label)) : "..."; }

struct Parsed {
    std::vector<Labels> operands;
    Labels result;
};

/// Labels of the last `count` axes of "...".
Labels expand_ellipsis(const Labels& labels, int count) {
    Labels expanded;
    for (const int label : labels) {
        if (label >= 0) expanded.push_back(label);
        else
            for (int axis = count - 1; axis >= 0; --axis) expanded.push_back(kEllipsis + axis);
    }
    return expanded;
}

Parsed parse(std::string_view equation, const std::vector<Tensor>& operands) {
    const auto arrow = equation.find("->");
    std::string_view left = equation.substr(0, arrow);
    std::vector<Labels> terms;
    for (;;) {
        const auto comma = left.find(',');
        terms.push_back(parse_term(equation, left.substr(0, comma)));
        if (comma == std::string_view::npos) break;
        left.remove_prefix(comma + 1);
    }
    if (terms.size() != operands.size())
        refuse(equation, fmt::format("expected {} operands, got {}", terms.size(), operands.size()));
    Parsed result;
    int ellipsis_rank = 0;
    bool has_ellipsis = false;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const int rank = operands[i].rank();
        const bool ellipsis_here = has(terms[i], -1);
        const int letters = static_cast<int>(terms[i].size()) - (ellipsis_here ? 1 : 0);
        if (ellipsis_here ? letters > rank : letters != rank)
            throw ShapeError(fmt::format("einsum: expected {}{} axes of operand {}, got {} in \"{}\"",
                                         ellipsis_here ? "at least " : "", letters, i, operands[i].shape().str(),
                                         equation));
        if (ellipsis_here) ellipsis_rank = std::max(ellipsis_rank, rank - letters), has_ellipsis = true;
        result.operands.push_back(expand_ellipsis(terms[i], rank - letters));
    }
    if (arrow == std::string_view::npos) {
        if (has_ellipsis) result.result = expand_ellipsis({-1}, ellipsis_rank);
        std::array<int, kEllipsis> times{};
        for (const Labels& term : terms)
            for (const int label : term)
                if (label >= 0) ++times[static_cast<std::size_t>(label)];
        for (int c = 0; c < kEllipsis; ++c)
            if (times[static_cast<std::size_t>(c)] == 1) result.result.push_back(c);
        return result;
    }
    const Labels output = parse_term(equation, equation.substr(arrow + 2));
    if (has(output, -1) && !has_ellipsis) refuse(equation, "has \"...\" only in the result");
    for (std::size_t i = 0; i < output.size(); ++i) {
        const int label = output[i];
        if (std::find(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i), label) !=
            output.begin() + static_cast<std::ptrdiff_t>(i))
            refuse(equation, fmt::format("has '{}' twice in the result", label < 0 ? "..." : label_name(label)));
        if (label >= 0 && std::ranges::none_of(terms, [&](const Labels& term) { return has(term, label); }))
            refuse(equation, fmt::format("has '{}' only in the result", static_cast<char>(label)));
    }
    result.result = expand_ellipsis(output, ellipsis_rank);
    return result;
}

/// A tensor with labelled axes, each label once.
struct LabelledTensor {
    Tensor x;
    Labels labels;

    [[nodiscard]] int axis(int label) const {
        return static_cast<int>(std::ranges::find(labels, label) - labels.begin());
    }
    [[nodiscard]] std::int64_t size(int label) const { return x.shape()[axis(label)]; }

    void sum_over(const Labels& reduced) {
        Dims axes;
        Labels remaining;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (has(reduced, labels[i])) axes.push_back(static_cast<std::int64_t>(i));
            else remaining.push_back(labels[i]);
        }
        if (axes.rank() > 0) x = sum(x, axes);
        labels = remaining;
    }
    /// Drops these axes, which have size 1.
    void drop(const Labels& ones) { *this = without(ones); }
    [[nodiscard]] LabelledTensor without(const Labels& ones) const {
        Shape shape;
        Labels remaining;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (has(ones, labels[i])) continue;
            shape.push_back(x.shape()[static_cast<int>(i)]);
            remaining.push_back(labels[i]);
        }
        return {reshape(x, shape), remaining};
    }
    /// Its axes in this order, missing ones with size 1.
    [[nodiscard]] Tensor aligned(const Labels& order) const {
        Dims axes;
        Shape shape;
        for (const int label : order) {
            shape.push_back(has(labels, label) ? size(label) : 1);
            if (has(labels, label)) axes.push_back(axis(label));
        }
        return reshape(permute(x, axes), shape);
    }
};

/// A repeated index selects the diagonal.
LabelledTensor labelled(const Tensor& x, const Labels& labels, std::string_view equation) {
    LabelledTensor result{x, labels};
    for (std::size_t i = 0; i < result.labels.size(); ++i)
        for (std::size_t j = i + 1; j < result.labels.size();) {
            if (result.labels[i] != result.labels[j]) {
                ++j;
                continue;
            }
            const int a = static_cast<int>(i), b = static_cast<int>(j);
            if (result.x.shape()[a] != result.x.shape()[b])
                throw ShapeError(fmt::format("einsum: expected one size for '{}', got {} in \"{}\"",
                                             label_name(result.labels[i]), result.x.shape().str(), equation));
            // The diagonal becomes the last axis, and is moved to the first of its positions.
            result.x = movedim(diagonal(result.x, 0, a, b), -1, a);
            result.labels.erase(result.labels.begin() + static_cast<std::ptrdiff_t>(j));
        }
    return result;
}

Tensor as_matrices(const LabelledTensor& operand, const Labels& batch, const Labels& rows, const Labels& columns) {
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    Dims axes;
    Shape shape{1, 1, 1};
    for (std::size_t i = 0; i < order.size(); ++i) {
        axes.push_back(operand.axis(order[i]));
        const int part = i < batch.size() ? 0 : i < batch.size() + rows.size() ? 1 : 2;
        shape[part] *= operand.size(order[i]);
    }
    return reshape(permute(operand.x, axes), shape);
}

/// @param used_later labels of later operands and of the result
LabelledTensor contract(LabelledTensor a, LabelledTensor b, const Labels& used_later) {
    // Axes of size 1 whose counterpart is longer are dropped.
    Labels unit_a, unit_b, reduced_a, reduced_b;
    for (const int label : a.labels) {
        if (!has(b.labels, label)) {
            if (!has(used_later, label)) reduced_a.push_back(label);
        } else if (a.size(label) != b.size(label)) {
            (a.size(label) == 1 ? unit_a : unit_b).push_back(label);
        }
    }
    a.drop(unit_a);
    b.drop(unit_b);
    for (const int label : unit_b)
        if (!has(used_later, label)) reduced_a.push_back(label);
    for (const int label : b.labels)
        if (!has(a.labels, label) && !has(used_later, label)) reduced_b.push_back(label);
    DType dtype = a.x.dtype();
    if (!reduced_a.empty() || !reduced_b.empty()) {  // sums of f16 and bf16 are not rounded before the product
        a.x = detail::upcast(a.x);
        b.x = detail::upcast(b.x);
        dtype = a.x.dtype();
    }
    a.sum_over(reduced_a);
    b.sum_over(reduced_b);
    Labels batch, rows, columns, contracted;
    for (const int label : a.labels)
        (!has(b.labels, label) ? rows : has(used_later, label) ? batch : contracted).push_back(label);
    for (const int label : b.labels)
        if (!has(a.labels, label)) columns.push_back(label);
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    if (contracted.empty()) return {a.aligned(order) * b.aligned(order), order};
    a.x = a.x.to(dtype);  // integers, whose sums have a wider type
    b.x = b.x.to(dtype);
    Shape shape;
    for (const int label : order) shape.push_back(has(a.labels, label) ? a.size(label) : b.size(label));
    return {reshape(matmul(as_matrices(a, batch, rows, contracted), as_matrices(b, batch, contracted, columns)), shape),
            order};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
    const FunctionCall call("einsum", {{"operands", std::span<const Tensor>(operands)}}, {{"equation", equation}});
    if (operands.empty()) throw ValueError("einsum: expected at least one operand, got none");
    call.require_defined({"operands"});
    const Parsed parsed = parse(equation, operands);
    for (std::size_t i = 0; i < operands.size(); ++i)
        ops::require_alike("einsum", "operand 0", operands[0].dtype(), operands[0].device(), "another",
                           operands[i].dtype(), operands[i].device());
    std::vector<LabelledTensor> tensors;
    for (std::size_t i = 0; i < operands.size(); ++i)
        tensors.push_back(
            labelled(operands.size() > 2 ? detail::upcast(operands[i]) : operands[i], parsed.operands[i], equation));
    std::vector<std::pair<int, std::int64_t>> sizes;
    for (const LabelledTensor& tensor : tensors)
        for (const int label : tensor.labels) {
            const auto entry = std::ranges::find(sizes, label, &std::pair<int, std::int64_t>::first);
            if (entry == sizes.end()) sizes.emplace_back(label, tensor.size(label));
            else if (entry->second == 1) entry->second = tensor.size(label);
            else if (tensor.size(label) != 1 && tensor.size(label) != entry->second)
                throw ShapeError(fmt::format("einsum: expected one size for '{}', got {} and {} in \"{}\"",
                                             label_name(label), entry->second, tensor.size(label), equation));
        }
    LabelledTensor product = tensors[0];
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        Labels used_later = parsed.result;
        for (std::size_t later = i + 1; later < tensors.size(); ++later)
            used_later.insert(used_later.end(), tensors[later].labels.begin(), tensors[later].labels.end());
        product = contract(std::move(product), std::move(tensors[i]), used_later);
    }
    Labels reduced;
    for (const int label : product.labels)
        if (!has(parsed.result, label)) reduced.push_back(label);
    product.sum_over(reduced);
    const Tensor result = product.aligned(parsed.result);
    return call.result(is_16bit_float(operands[0].dtype()) ? result.to(operands[0].dtype()) : result);
}

}  // namespace declivity
