// Layer 2, private. Elementwise expressions: trees of functions over views, and the kernels generated from them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <declivity/ops/epilogue.hpp>
#include <declivity/ops/function.hpp>
#include <declivity/ops/scalar.hpp>
#include <declivity/ops/lazy_array.hpp>
#include <declivity/ops/view.hpp>

namespace declivity::ops {

/// Types of a function's inputs and result.
enum class Domain : std::uint8_t {
    real,     ///< floating-point, all of one type; returns that type
    number,   ///< numbers of one type; returns that type
    compare,  ///< numbers of one type; returns bool
    integer,  ///< integers of one type, or bools; returns that type
    shift,    ///< integers of one type; returns that type
    choose,   ///< a bool, then numbers of one type; returns that type
    logic,    ///< bools; returns bool
};

/// Forms of gradients that other kernels fuse.
enum class GradientForm : std::uint8_t {
    none,
    g,
    minus_g,
    g_times_a,
    g_times_b,
    g_times_p,
    other,
};

/// One row of the function table, with derived properties.
struct FunctionInfo {
    std::string_view name;
    Domain domain;
    int inputs;              ///< 1: x; 2: a, b; 3: a, b, c
    int parameters;          ///< number of scalar parameters: p, q
    std::string_view value;  ///< OpenCL C
    /// With respect to each input, as OpenCL C of g, the inputs and the result y; "" if there is none, or it is always
    /// a decomposition.
    std::array<std::string_view, 3> gradient;

    /// True if the value calls functions such as exp, which cost more than storing their result.
    bool costly = false;
    /// True if the value calls functions of cl_kernels/lib/division.clh, or of cl_kernels/lib/special.clh.
    bool divides = false, special = false;
    struct Gradient {
        GradientForm form = GradientForm::none;
        bool costly = false;
        std::array<bool, 3> needs_input{};  ///< whether it mentions this input
        bool needs_result = false;
    };
    std::array<Gradient, 3> gradient_info{};
    /// True if there is a gradient with respect to some input.
    bool has_gradient = false;
};
DECLIVITY_API const FunctionInfo& info(Function function);

/// Returns whether an identifier of one letter occurs in a text of OpenCL C or C++.
constexpr bool mentions(std::string_view text, char name) {
    const auto is_part_of_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (std::size_t i = text.find(name); i != std::string_view::npos; i = text.find(name, i + 1))
        if ((i == 0 || !is_part_of_word(text[i - 1])) && (i + 1 == text.size() || !is_part_of_word(text[i + 1])))
            return true;
    return false;
}

/// An unevaluated elementwise expression with a shape and a type. Cheap to copy.
class DECLIVITY_API Expression {
  public:
    Expression() = default;
    /// The elements of a view.
    Expression(const View& view);  // NOLINT: a view is an expression
    /// The elements of a lazy array, computed or not.
    Expression(const LazyArray& value);  // NOLINT: and so is a value
    /// A constant; it takes the type of the expression that it is combined with.
    static Expression constant(Scalar value, DType dtype);
    /// In an Epilogue: the value computed by the preceding operator.
    static Expression operator_result(DType dtype, const Shape& shape);
    /// Applies a function to inputs, which are broadcast.
    /// @param name of the function in errors, if it differs from that in the table
    /// @throws ShapeError, TypeError, DeviceError naming the function; ValueError if an integer type cannot hold a
    /// parameter
    static Expression apply(Function function, std::span<const Expression> inputs,
                            std::span<const Scalar> parameters = {}, std::string_view name = {});
    /// The gradient of function(...) with respect to one input, from the gradient of its result, the inputs, and the
    /// result. Operands that the rule of the table does not mention may be empty.
    static Expression gradient(Function function, int input, const Expression& result_gradient,
                               std::span<const Expression> inputs, const Expression& result,
                               std::span<const Scalar> parameters);
    /// Conversion to another type: to bool means x != 0. From floating-point to integers the fraction is truncated,
    /// values out of range are saturated, NaN becomes 0; between integers high bits are dropped. To f16 and bf16 rounds
    /// to nearest, ties to even, once; from integers by way of f32.
    static Expression cast(const Expression& from, DType to);

    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }
    [[nodiscard]] const Shape& shape() const;
    [[nodiscard]] DType dtype() const;

    [[nodiscard]] const std::shared_ptr<const ExpressionNode>& node() const noexcept { return node_; }
    explicit Expression(std::shared_ptr<const ExpressionNode> node) : node_(std::move(node)) {}

  private:
    std::shared_ptr<const ExpressionNode> node_;
};

/// Evaluates an expression into `out`, which may have any strides without zeros. `out` may be one of the inputs or
/// overlap them: the result is as if they had been read before.
DECLIVITY_API void evaluate(const Expression& expression, const View& out);
/// Evaluates an expression into new dense memory.
DECLIVITY_API View evaluate(const Expression& expression, const Device& device);

/// The epilogue of a heavy operator (matmul, convolution), applied to each element of its result before it is stored:
/// an expression of operator_result(), or empty.
inline Epilogue epilogue_of(const Expression& expression) { return Epilogue(expression.node()); }
inline Expression expression_of(const Epilogue& epilogue) { return Expression(epilogue.node()); }

}  // namespace declivity::ops
