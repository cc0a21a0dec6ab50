// The catalogue of functions.hpp as cases: how each is called, its inputs, and its reference in plain C++ double. A
// test fails if a function is missing here. The cases are in the other files of this folder, which are compiled once
// for all tests that use them.
#pragma once

#include <cstddef>
#include <vector>

#include <tests/functions/catalogue/case.hpp>

namespace declivity::test::catalogue {

std::vector<Case> cases();

/// Returns the share, of 0 to 3, of its cases that a long test runs in this turn. A test runs in every eighth or
/// sixteenth turn of 64: each of these series of turns has all shares.
std::size_t share_of_turn(std::size_t turn);
/// If tests run in turns (./bootstrap test turn, DECLIVITY_TURN), returns whether a long test leaves this case to
/// another turn.
bool is_other_turn(std::size_t at);

/// The same values, rounded to f32, so that both types compute with the same.
Columns inputs_of(const Case& test_case);

enum class Layout : bool { dense, strided };

/// Axes in reverse order in memory, every second element of the innermost.
Tensor strided(const Tensor& x);

Tensors tensors_of(const Case& test_case, const Columns& columns, DType dtype, Layout layout);

}  // namespace declivity::test::catalogue
