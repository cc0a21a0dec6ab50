// Layer 6. ModuleList and ModuleDict: child modules by index and by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <declivity/nn/callable.hpp>

namespace declivity::nn {

namespace detail {

[[noreturn]] DECLIVITY_API void refuse_index(std::string_view type, std::int64_t index, std::size_t size);
[[noreturn]] DECLIVITY_API void refuse_key(std::string_view type, std::string_view key,
                                           const std::vector<std::string>& keys);

/// Typed range over the children of a module, in order.
template <class M>
class ModuleReferences {
  public:
    class Iterator {
      public:
        using iterator_category = std::forward_iterator_tag;
        using value_type = M;
        using difference_type = std::ptrdiff_t;
        using pointer = M*;
        using reference = M&;
        Iterator() = default;
        explicit Iterator(typename std::vector<M*>::const_iterator at) : at_(at) {}
        M& operator*() const { return **at_; }
        M* operator->() const { return *at_; }
        Iterator& operator++() { return ++at_, *this; }
        Iterator operator++(int) { return Iterator(at_++); }
        friend bool operator==(const Iterator&, const Iterator&) = default;

      private:
        typename std::vector<M*>::const_iterator at_;
    };

    void append(M& module) { modules_.push_back(&module); }
    [[nodiscard]] M& at(std::string_view type, std::int64_t index) const {
        const auto count = static_cast<std::int64_t>(modules_.size());
        if (index < -count || index >= count) refuse_index(type, index, modules_.size());
        return *modules_[static_cast<std::size_t>(index < 0 ? index + count : index)];
    }
    [[nodiscard]] std::size_t size() const noexcept { return modules_.size(); }
    [[nodiscard]] Iterator begin() const { return Iterator(modules_.begin()); }
    [[nodiscard]] Iterator end() const { return Iterator(modules_.end()); }

  private:
    std::vector<M*> modules_;
};

}  // namespace detail

/// @addtogroup nn_module
/// @{

/// List of child modules "0", "1", ... of a common class:
///
///     struct Net : nn::Layer {
///         nn::ModuleList<Block>& blocks = add("blocks", nn::ModuleList<Block>());
///         Net() { for (int i = 0; i < 4; ++i) blocks.append(Block(8)); }
///         Tensor forward(Tensor x) override { for (Block& block : blocks) x = block(x); return x; }
///     };
///
/// @tparam M base class of the modules
template <class M = Layer>
class DECLIVITY_API ModuleList : public Module {
    static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");

  public:
    ModuleList() = default;
    template <class... Modules>
    requires(sizeof...(Modules) > 0 && (std::is_base_of_v<M, Modules> && ...) &&
             !(sizeof...(Modules) == 1 &&
               (std::is_same_v<ModuleList, Modules> && ...))) explicit ModuleList(Modules... modules) {
        (append(std::move(modules)), ...);
    }

    /// Moves a module to the end of the list and returns it.
    template <class N>
    requires std::is_base_of_v<M, N> N& append(N module) {
        N& reference = add(std::to_string(modules_.size()), std::move(module));
        modules_.append(reference);
        return reference;
    }
    /// Constructs the next module in place, from constructor arguments.
    template <class N = M, class... Args>
    requires std::is_base_of_v<M, N> N& emplace(Args&&... args) {
        N& reference = Module::emplace<N>(std::to_string(modules_.size()), std::forward<Args>(args)...);
        modules_.append(reference);
        return reference;
    }
    /// Negative indices count from the end. @throws ValueError for an index out of range
    [[nodiscard]] M& operator[](std::int64_t index) const {
        guard_children();
        return modules_.at("ModuleList", index);
    }
    [[nodiscard]] std::size_t size() const {
        require_in_place();
        guard_children();
        return modules_.size();
    }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] auto begin() const {
        guard_children();
        return modules_.begin();
    }
    [[nodiscard]] auto end() const { return modules_.end(); }
    [[nodiscard]] std::string type_name() const override { return "ModuleList"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ModuleList); }

  private:
    detail::ModuleReferences<M> modules_;
};

/// Child modules of a common class by name, in insertion order: `heads.insert("size", nn::Linear(8, 2))`,
/// `heads["size"](x)`, `for (auto [name, head] : heads.items())`.
/// @tparam M base class of the modules
template <class M = Layer>
class DECLIVITY_API ModuleDict : public Module {
    static_assert(std::is_base_of_v<Module, M>, "a child must be a Module");

  public:
    ModuleDict() = default;

    /// Moves a module into the dict and returns it. @throws ValueError for a name that is taken, or contains a dot
    template <class N>
    requires std::is_base_of_v<M, N> N& insert(std::string_view key, N module) {
        N& reference = add(key, std::move(module));
        note(key, reference);
        return reference;
    }
    /// Constructs a module in place, from constructor arguments.
    template <class N = M, class... Args>
    requires std::is_base_of_v<M, N> N& emplace(std::string_view key, Args&&... args) {
        N& reference = Module::emplace<N>(key, std::forward<Args>(args)...);
        note(key, reference);
        return reference;
    }
    /// @throws ValueError listing the available keys
    [[nodiscard]] M& operator[](std::string_view key) const {
        guard_children();
        for (std::size_t i = 0; i < keys_.size(); ++i)
            if (keys_[i] == key) return modules_.at("ModuleDict", static_cast<std::int64_t>(i));
        detail::refuse_key("ModuleDict", key, keys_);
    }
    [[nodiscard]] bool contains(std::string_view key) const {
        guard_children();
        for (const std::string& present : keys_)
            if (present == key) return true;
        return false;
    }
    [[nodiscard]] const std::vector<std::string>& keys() const {
        guard_children();
        return keys_;
    }
    [[nodiscard]] std::vector<std::pair<std::string, M&>> items() const {
        guard_children();
        std::vector<std::pair<std::string, M&>> all;
        for (std::size_t i = 0; i < keys_.size(); ++i)
            all.emplace_back(keys_[i], modules_.at("ModuleDict", static_cast<std::int64_t>(i)));
        return all;
    }
    [[nodiscard]] std::size_t size() const {
        require_in_place();
        guard_children();
        return keys_.size();
    }
    [[nodiscard]] bool empty() const { return size() == 0; }
    /// Iterator over the modules, without their names.
    [[nodiscard]] auto begin() const {
        guard_children();
        return modules_.begin();
    }
    [[nodiscard]] auto end() const { return modules_.end(); }
    [[nodiscard]] std::string type_name() const override { return "ModuleDict"; }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(ModuleDict); }

  private:
    void note(std::string_view key, M& module) {
        keys_.emplace_back(key);
        modules_.append(module);
    }
    std::vector<std::string> keys_;
    detail::ModuleReferences<M> modules_;
};

/// @}

}  // namespace declivity::nn
