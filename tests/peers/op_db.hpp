// Support for the adapters of op_db.cpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <declivity/declivity.hpp>
#include <nlohmann/json.hpp>

namespace declivity::peers {

using Json = nlohmann::json;

/// A sample that the function deliberately does not support.
struct UnsupportedSample : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The elements of tensors.
class Reader {
  public:
    Reader(const std::string& path, const Device& device);
    [[nodiscard]] Tensor tensor(const Json& json) const;

  private:
    std::vector<char> bytes_;
    Device device_;
};

/// A call's arguments, by position or by name; unread arguments make the sample unsupported.
class Arguments {
  public:
    Arguments(const Json& call, const Reader& reader);

    [[nodiscard]] bool has(std::size_t position, const char* name = nullptr);
    /// Returns whether it is present and not null.
    [[nodiscard]] bool is_given(std::size_t position, const char* name = nullptr);
    Tensor tensor(std::size_t position, const char* name = nullptr);
    /// Undefined if absent.
    Tensor tensor_or_none(std::size_t position, const char* name = nullptr);
    std::vector<Tensor> tensors(std::size_t position, const char* name = nullptr);
    TensorOrScalar tensor_or_number(std::size_t position, const char* name = nullptr);
    std::int64_t integer(std::size_t position, const char* name,
                         std::optional<std::int64_t> default_value = std::nullopt);
    double number(std::size_t position, const char* name, std::optional<double> default_value = std::nullopt);
    Scalar scalar(std::size_t position, const char* name, std::optional<Scalar> default_value = std::nullopt);
    bool flag(std::size_t position, const char* name, bool default_value);
    std::string word(std::size_t position, const char* name, const std::string& default_value);
    /// A list of integers, or one integer; None in a list is -1.
    Dims dims(std::size_t position, const char* name, const std::optional<Dims>& default_value = std::nullopt);
    /// A list of numbers, or one number.
    std::vector<double> numbers(std::size_t position, const char* name);
    /// The JSON value of an argument; null if absent.
    [[nodiscard]] const Json& raw(std::size_t position, const char* name = nullptr);
    /// The DType of a dtype in the format of op_db.py.
    static DType dtype(const Json& json);
    /// Ignores an argument of this name.
    void ignore(const char* name);
    [[nodiscard]] std::size_t positional_count() const { return args_.size(); }

    /// Compares only the first result: the others depend on the selection among equal elements.
    void compare_first() { first_ = true; }
    [[nodiscard]] bool compares_first() const { return first_; }
    /// PyTorch's result, for choosing among several correct results, such as the sign of a vector.
    [[nodiscard]] Tensor expected(std::size_t position) const { return reader_->tensor(results_.at(position)); }
    [[nodiscard]] bool has_expected(std::size_t position) const { return position < results_.size(); }
    /// Loosens the tolerance of gradients: PyTorch's own in f32 are not exact.
    void loosen(double factor) { loose_ = factor; }
    /// Loosens the tolerance of f16 and bf16 gradients.
    void loosen_reduced_precision(double factor) {
        if (reduced_precision_) loose_ = factor;
    }
    void set_reduced_precision(bool reduced) { reduced_precision_ = reduced; }
    [[nodiscard]] double looseness() const { return loose_; }
    /// Compares only one triangle of the gradient of the i-th differentiable tensor: PyTorch's has numbers in the other
    /// one too, which the function does not read.
    void compare_triangle(std::size_t i, bool upper) { triangles_[i] = upper; }
    /// The compared part of a gradient.
    [[nodiscard]] Tensor compared_part(std::size_t i, const Tensor& gradient) const {
        const auto found = triangles_.find(i);
        if (found == triangles_.end() || gradient.numel() == 0) return gradient;
        return found->second ? triu(gradient) : tril(gradient);
    }
    /// Skips gradients: PyTorch's are wrong, as central differences show.
    void compare_values_alone() { values_alone_ = true; }
    [[nodiscard]] bool compares_values_alone() const { return values_alone_; }
    /// The inputs that require gradients, in PyTorch's order.
    [[nodiscard]] const std::vector<Tensor>& attach_backward() const { return differentiable_; }
    /// @throws UnsupportedSample if an argument was not read
    void require_all_used() const;

  private:
    const Json* find(std::size_t position, const char* name);
    Tensor make_tensor(const Json& json);

    std::vector<Json> args_, results_;
    std::map<std::string, Json> kwargs_;
    std::vector<bool> used_;
    std::map<std::string, bool> used_names_;
    std::map<std::string, Tensor> tensors_;  // by their text, so that each is created once
    std::vector<Tensor> differentiable_;
    const Reader* reader_;
    std::map<std::size_t, bool> triangles_;
    bool first_ = false, values_alone_ = false, reduced_precision_ = false;
    double loose_ = 1;
};

using Adapter = std::function<std::vector<Tensor>(Arguments&)>;
using Table = std::map<std::string, Adapter>;
Table adapters();
/// Registers adapters; a file op_db_<name>.cpp ends with `const Adapters own{add_name};`
struct Adapters {
    explicit Adapters(void (*add)(Table& all));
};
/// The argument reduction, or its deprecated predecessors.
Reduction reduction_of(Arguments& a);
/// The call as text.
std::string describe(const Json& call);

}  // namespace declivity::peers
