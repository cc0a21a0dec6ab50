// Layer 2, private. Row operators (softmax, layer normalisation): operations that bring the elements of rows together
// and write as many. What their rows are made from (the prologue: a scale, a mask, a residual) and what follows their
// results (the epilogue) become parts of their kernel, which includes cl_kernels/lib/row_program.clh.
#pragma once

#include <string_view>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// The operand of a row operator: dense elements, or what its kernel is to compute.
struct RowInput {
    View view;
    LazyArray waiting;  ///< OperationOperands::prologue
};

/// f16 and bf16 values come as f32 where they wait, to be converted as the rows are read, and as they are where elements are there
/// (OperationOperands::upcasts_to_f32).
/// @param x given away, where nobody else is to have its elements
/// @param inner the first axis of a row
RowInput row_input(LazyArray x, int inner);

/// A kernel of rows, and what it takes beside them.
struct RowKernel {
    const char* file;
    const char* name;
    std::string_view shown_as;        ///< in profiles
    Defines defines;                  ///< of its own
    std::vector<Argument> arguments;  ///< before those of row_program.clh
    double flops;                     ///< for each element
    bool needs_row;                   ///< whether it keeps a row that is neither its operand nor its result
};

/// Launches the kernel for rows of the operation's prologue, or of its first read where that is none, and for the
/// functions that follow its first output. Both have the shape of the latter.
EpilogueFused launch_row_kernel(const OperationViews& views, int inner, const RowKernel& own);

}  // namespace declivity::ops
