// Layer 1. Named scopes for error messages and profiles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <declivity/export.hpp>

namespace declivity {

namespace detail {
struct OperatorRun;
}

/// @addtogroup runtime
/// @{

/// Names of scopes, outermost first, joined by '/'. Copies share the text.
class DECLIVITY_API ScopePath {
  public:
    ScopePath() = default;
    explicit ScopePath(std::string_view text);
    [[nodiscard]] const std::string& str() const noexcept;
    operator const std::string&() const noexcept { return str(); }  // NOLINT: it is a text
    [[nodiscard]] bool empty() const noexcept { return text_ == nullptr; }
    friend bool operator==(const ScopePath& a, std::string_view b) { return a.str() == b; }

  private:
    std::shared_ptr<const std::string> text_;
};

/// RAII scope: errors thrown by this thread contain the path of open scopes: "... (in Net/conv1)". An active Profiler
/// shows it as a span of this thread.
class DECLIVITY_API Scope {
  public:
    explicit Scope(std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Path of the open scopes of this thread.
    static ScopePath path();

  private:
    ScopePath path_before_;  // set only if the path was requested
    std::size_t length_before_;
    std::int64_t begin_;  // ns; 0 without an active Profiler
};

class FunctionScope;

/// RAII scope for deferred work: replaces the scopes of this thread by `path`, as returned by Scope::path(), outside of
/// any FunctionScope.
class DECLIVITY_API ResumedScope {
  public:
    /// @param deferred name of the deferred work for errors, as it may be run by an unrelated call; must outlive the
    /// scope
    explicit ResumedScope(const ScopePath& path, std::string_view deferred = {});
    ~ResumedScope();
    ResumedScope(const ResumedScope&) = delete;
    ResumedScope& operator=(const ResumedScope&) = delete;

    /// Name of the deferred work that is running; empty if there is none.
    static std::string_view deferred() noexcept;
    [[deprecated("ResumedScope::deferred")]] static std::string_view waiting() noexcept { return deferred(); }

  private:
    ScopePath before_;
    std::string_view waiting_before_;
    const FunctionScope* function_before_;
};

/// True if any Profiler is active; to avoid building span names otherwise.
DECLIVITY_API bool profiling() noexcept;

/// Category of a span in the trace.
enum class SpanKind : std::uint8_t { module, function, backward, operator_, wait };

/// RAII span of this thread in an active Profiler. Not part of error messages. Without an active Profiler it costs one
/// flag check.
class DECLIVITY_API Span {
  public:
    /// @param name must outlive the span
    explicit Span(std::string_view name, SpanKind kind = SpanKind::function);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

  private:
    std::string_view name_;
    std::int64_t begin_;
    SpanKind kind_;
};

/// RAII scope of a function call, or of its backward pass (SpanKind::backward). An error thrown by a nested function
/// names the caller: "linear: expected ... (called by lstm_cell)". Also a Span.
class DECLIVITY_API FunctionScope {
  public:
    /// @param name must outlive the scope
    explicit FunctionScope(std::string_view name, SpanKind kind = SpanKind::function);
    ~FunctionScope();
    FunctionScope(const FunctionScope&) = delete;
    FunctionScope& operator=(const FunctionScope&) = delete;

    [[nodiscard]] std::string_view name() const noexcept { return name_; }
    [[nodiscard]] SpanKind kind() const noexcept { return kind_; }
    /// The enclosing function scope, null for the outermost.
    [[nodiscard]] const FunctionScope* caller() const noexcept { return caller_; }
    /// The innermost function scope of this thread, null outside of functions.
    static const FunctionScope* current() noexcept;

  private:
    std::string_view name_;
    SpanKind kind_;
    const FunctionScope* caller_;
    Span span_;
};

/// Work of an operator by formula: an estimate of the minimum that a device must do, not a measurement.
struct Work {
    double flops = 0;  ///< floating-point additions, multiplications and functions
    double bytes = 0;  ///< bytes of operands and results, each counted once
    bool f64 = false;  ///< in double precision
};

/// RAII scope of an operator with the given work, to which all launches of this thread are attributed. In a profile,
/// the longest of several kernels carries all of the work; nested scopes add nothing. Also a Span.
class DECLIVITY_API WorkScope {
  public:
    /// @param name must outlive the scope
    WorkScope(std::string_view name, const Work& work);
    ~WorkScope();
    WorkScope(const WorkScope&) = delete;
    WorkScope& operator=(const WorkScope&) = delete;

  private:
    Span span_;
    std::shared_ptr<detail::OperatorRun> run_;  // of the outermost scope, with an active Profiler
};

/// @}

}  // namespace declivity
