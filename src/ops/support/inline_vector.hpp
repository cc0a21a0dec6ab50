// Layer 2, private. A small vector with in-place storage.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <utility>

namespace declivity::ops {

/// A vector of at most N elements.
template <class T, std::size_t N>
class InlineVector {
  public:
    InlineVector() = default;
    InlineVector(std::initializer_list<T> values) : InlineVector(values.begin(), values.end()) {}
    template <class Iterator>
    InlineVector(Iterator first, Iterator last) {
        for (; first != last; ++first) push_back(*first);
    }
    void push_back(T value) {
        if (size_ == N) throw std::length_error("InlineVector: expected at most the capacity, got more elements");
        values_[size_++] = std::move(value);
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] const T* begin() const noexcept { return values_.data(); }
    [[nodiscard]] const T* end() const noexcept { return values_.data() + size_; }
    [[nodiscard]] const T& back() const { return (*this)[size_ - 1]; }
    const T& operator[](std::size_t at) const { return std::span(begin(), size_)[at]; }

  private:
    std::array<T, N> values_{};
    std::size_t size_ = 0;
};

}  // namespace declivity::ops
