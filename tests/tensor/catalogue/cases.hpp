// The catalogue of functions.hpp as cases: how each is called, with what, and what it is in plain C++ double. A test
// fails where a function is missing here. The cases stand in the files beside this one, which are compiled once for all
// tests that go over them.
#pragma once

#include <cstddef>
#include <vector>

#include <tests/tensor/catalogue/case.hpp>

namespace declivity::test::catalogue {

std::vector<Case> cases();

/// Where tests are run by turns (./bootstrap test, DECLIVITY_TURN), whether a long one leaves this case to another.
/// The cases go by pairs of turns, and under Oclgrind, where a file has one turn of eight, by the quarters of 32 turns.
bool of_another_turn(std::size_t at);

/// The same values, rounded to what f32 holds, so that both types compute with the same.
Columns inputs_of(const Case& one);

enum class Layout : bool { dense, strided };

/// With axes in reverse order in memory, every second element of the innermost.
Tensor strided(const Tensor& x);

Tensors tensors_of(const Case& one, const Columns& columns, DType dtype, Layout layout);

}  // namespace declivity::test::catalogue
