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

constexpr int kRest = 256;  // labels from here on are the axes of "...", counted from the last one

using Labels = std::vector<int>;

bool has(const Labels& labels, int one) { return std::ranges::find(labels, one) != labels.end(); }

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
    throw ValueError(fmt::format("einsum: {} in \"{}\"", why, equation));
}

/// Letters of one operand, with -1 for "...".
Labels parsed(std::string_view equation, std::string_view term) {
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
std::string written(int label) { return label < kRest ? std::string(1, static_cast<char>(label)) : "..."; }

struct Parsed {
    std::vector<Labels> operands;
    Labels result;
};

/// Labels of the last `count` axes of "...".
Labels written_out(const Labels& labels, int count) {
    Labels all;
    for (const int number : labels) {
        if (number >= 0) all.push_back(number);
        else
            for (int axis = count - 1; axis >= 0; --axis) all.push_back(kRest + axis);
    }
    return all;
}

Parsed parse(std::string_view equation, const std::vector<Tensor>& operands) {
    const auto arrow = equation.find("->");
    std::string_view left = equation.substr(0, arrow);
    std::vector<Labels> terms;
    for (;;) {
        const auto comma = left.find(',');
        terms.push_back(parsed(equation, left.substr(0, comma)));
        if (comma == std::string_view::npos) break;
        left.remove_prefix(comma + 1);
    }
    if (terms.size() != operands.size())
        refuse(equation, fmt::format("expected {} operands, got {}", terms.size(), operands.size()));
    Parsed made;
    int widest = 0;
    bool rest = false;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const int rank = operands[i].rank();
        const bool open = has(terms[i], -1);
        const int named = static_cast<int>(terms[i].size()) - (open ? 1 : 0);
        if (open ? named > rank : named != rank)
            throw ShapeError(fmt::format("einsum: expected {}{} axes of operand {}, got {} in \"{}\"",
                                         open ? "at least " : "", named, i, operands[i].shape().str(), equation));
        if (open) widest = std::max(widest, rank - named), rest = true;
        made.operands.push_back(written_out(terms[i], rank - named));
    }
    if (arrow == std::string_view::npos) {
        if (rest) made.result = written_out({-1}, widest);
        std::array<int, kRest> times{};
        for (const Labels& term : terms)
            for (const int number : term)
                if (number >= 0) ++times[static_cast<std::size_t>(number)];
        for (int c = 0; c < kRest; ++c)
            if (times[static_cast<std::size_t>(c)] == 1) made.result.push_back(c);
        return made;
    }
    const Labels wanted = parsed(equation, equation.substr(arrow + 2));
    if (has(wanted, -1) && !rest) refuse(equation, "has \"...\" only in the result");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const int one = wanted[i];
        if (std::find(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(i), one) !=
            wanted.begin() + static_cast<std::ptrdiff_t>(i))
            refuse(equation, fmt::format("has '{}' twice in the result", one < 0 ? "..." : written(one)));
        if (one >= 0 && std::ranges::none_of(terms, [&](const Labels& term) { return has(term, one); }))
            refuse(equation, fmt::format("has '{}' only in the result", static_cast<char>(one)));
    }
    made.result = written_out(wanted, widest);
    return made;
}

/// A tensor with labelled axes, each label once.
struct Named {
    Tensor x;
    Labels labels;

    [[nodiscard]] int axis(int label) const {
        return static_cast<int>(std::ranges::find(labels, label) - labels.begin());
    }
    [[nodiscard]] std::int64_t size(int label) const { return x.shape()[axis(label)]; }

    void sum_over(const Labels& over) {
        Dims axes;
        Labels left;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (has(over, labels[i])) axes.push_back(static_cast<std::int64_t>(i));
            else left.push_back(labels[i]);
        }
        if (axes.rank() > 0) x = sum(x, axes);
        labels = left;
    }
    /// Drops these axes, which have size 1.
    void drop(const Labels& ones) { *this = ordered_dropping(ones); }
    [[nodiscard]] Named ordered_dropping(const Labels& ones) const {
        Shape shape;
        Labels left;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (has(ones, labels[i])) continue;
            shape.push_back(x.shape()[static_cast<int>(i)]);
            left.push_back(labels[i]);
        }
        return {reshape(x, shape), left};
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
Named named(const Tensor& x, const Labels& labels, std::string_view equation) {
    Named made{x, labels};
    for (std::size_t i = 0; i < made.labels.size(); ++i)
        for (std::size_t j = i + 1; j < made.labels.size();) {
            if (made.labels[i] != made.labels[j]) {
                ++j;
                continue;
            }
            const int a = static_cast<int>(i), b = static_cast<int>(j);
            if (made.x.shape()[a] != made.x.shape()[b])
                throw ShapeError(fmt::format("einsum: expected one size for '{}', got {} in \"{}\"",
                                             written(made.labels[i]), made.x.shape().str(), equation));
            // The diagonal becomes the last axis, and is moved to the first of its positions.
            made.x = movedim(diagonal(made.x, 0, a, b), -1, a);
            made.labels.erase(made.labels.begin() + static_cast<std::ptrdiff_t>(j));
        }
    return made;
}

Tensor as_matrices(const Named& of, const Labels& batch, const Labels& rows, const Labels& columns) {
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    Dims axes;
    Shape shape{1, 1, 1};
    for (std::size_t i = 0; i < order.size(); ++i) {
        axes.push_back(of.axis(order[i]));
        const int part = i < batch.size() ? 0 : i < batch.size() + rows.size() ? 1 : 2;
        shape[part] *= of.size(order[i]);
    }
    return reshape(permute(of.x, axes), shape);
}

/// @param kept indices that are used later
Named joined(Named a, Named b, const Labels& kept) {
    // Axes of size 1 whose counterpart is longer are dropped.
    Labels ones_a, ones_b, alone_a, alone_b;
    for (const int label : a.labels) {
        if (!has(b.labels, label)) {
            if (!has(kept, label)) alone_a.push_back(label);
        } else if (a.size(label) != b.size(label)) {
            (a.size(label) == 1 ? ones_a : ones_b).push_back(label);
        }
    }
    a.drop(ones_a);
    b.drop(ones_b);
    for (const int label : ones_b)
        if (!has(kept, label)) alone_a.push_back(label);
    for (const int label : b.labels)
        if (!has(a.labels, label) && !has(kept, label)) alone_b.push_back(label);
    DType dtype = a.x.dtype();
    if (!alone_a.empty() || !alone_b.empty()) {  // sums of f16 and bf16 are not rounded before the product
        a.x = detail::upcast(a.x);
        b.x = detail::upcast(b.x);
        dtype = a.x.dtype();
    }
    a.sum_over(alone_a);
    b.sum_over(alone_b);
    Labels batch, rows, columns, summed;
    for (const int label : a.labels)
        (!has(b.labels, label) ? rows : has(kept, label) ? batch : summed).push_back(label);
    for (const int label : b.labels)
        if (!has(a.labels, label)) columns.push_back(label);
    Labels order = batch;
    order.insert(order.end(), rows.begin(), rows.end());
    order.insert(order.end(), columns.begin(), columns.end());
    if (summed.empty()) return {a.aligned(order) * b.aligned(order), order};
    a.x = a.x.to(dtype);  // integers, whose sums have a wider type
    b.x = b.x.to(dtype);
    Shape shape;
    for (const int label : order) shape.push_back(has(a.labels, label) ? a.size(label) : b.size(label));
    return {reshape(matmul(as_matrices(a, batch, rows, summed), as_matrices(b, batch, summed, columns)), shape), order};
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
    const FunctionCall call("einsum", {{"operands", std::span<const Tensor>(operands)}}, {{"equation", equation}});
    if (operands.empty()) throw ValueError("einsum: expected at least one operand, got none");
    call.require_defined({"operands"});
    const Parsed all = parse(equation, operands);
    for (std::size_t i = 0; i < operands.size(); ++i)
        ops::require_alike("einsum", "operand 0", operands[0].dtype(), operands[0].device(), "another",
                           operands[i].dtype(), operands[i].device());
    std::vector<Named> parts;
    for (std::size_t i = 0; i < operands.size(); ++i)
        parts.push_back(
            named(operands.size() > 2 ? detail::upcast(operands[i]) : operands[i], all.operands[i], equation));
    std::vector<std::pair<int, std::int64_t>> sizes;
    for (const Named& part : parts)
        for (const int label : part.labels) {
            const auto known = std::ranges::find(sizes, label, &std::pair<int, std::int64_t>::first);
            if (known == sizes.end()) sizes.emplace_back(label, part.size(label));
            else if (known->second == 1) known->second = part.size(label);
            else if (part.size(label) != 1 && part.size(label) != known->second)
                throw ShapeError(fmt::format("einsum: expected one size for '{}', got {} and {} in \"{}\"",
                                             written(label), known->second, part.size(label), equation));
        }
    Named made = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
        Labels kept = all.result;
        for (std::size_t later = i + 1; later < parts.size(); ++later)
            kept.insert(kept.end(), parts[later].labels.begin(), parts[later].labels.end());
        made = joined(std::move(made), std::move(parts[i]), kept);
    }
    Labels over;
    for (const int label : made.labels)
        if (!has(all.result, label)) over.push_back(label);
    made.sum_over(over);
    const Tensor result = made.aligned(all.result);
    return call.result(is_16bit_float(operands[0].dtype()) ? result.to(operands[0].dtype()) : result);
}

}  // namespace declivity
