// Layer 2, private. Row operators (softmax, layer normalisation): operations that map rows to rows of the same length.
// The functions that compute their rows (the prologue: a scale, a mask, a residual) and those that follow their results
// (the epilogue) are fused into their kernel, which includes cl_kernels/lib/row_program.clh.
#pragma once

#include <string_view>
#include <vector>

#include <declivity/ops/operation.hpp>
#include <declivity/runtime/launch.hpp>

namespace declivity::ops {

/// The operand of a row operator: dense elements, or a prologue that its kernel computes.
struct RowInput {
    View view;
    LazyArray pending;  ///< OperationOperands::prologue
};

/// Prepares the operand. Pending f16 and bf16 values are upcast to f32 as the rows are read; computed ones are passed
/// as they are (OperationOperands::upcasts_to_f32).
/// @param x donated if its elements are not needed otherwise
/// @param inner the first axis of a row
RowInput row_input(LazyArray x, int inner);

/// A row kernel and its parameters.
struct RowKernel {
    const char* file;
    const char* name;
    std::string_view shown_as;        ///< name in profiles
    Defines defines;                  ///< defines of the kernel
    std::vector<Argument> arguments;  ///< arguments before those of row_program.clh
    double flops;                     ///< flops for each element
    bool needs_row;                   ///< true if it stores a row that is neither its operand nor its result
};

/// Launches the row kernel for the operation's prologue, or for its first read if there is none, with the functions
/// that follow its first output. Both have the shape of the latter.
EpilogueFused launch_row_kernel(const OperationViews& views, int inner, const RowKernel& own);

}  // namespace declivity::ops
