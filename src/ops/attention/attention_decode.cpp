// Attention to a KV cache whose lengths are on the device, and appending to it
// (cl_kernels/attention/attention_decode.clh).
#include <algorithm>
#include <string_view>
#include <vector>

#include <declivity/ops/attention.hpp>
#include <declivity/ops/operation.hpp>
#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/engine/real_arguments.hpp"
#include "ops/support/local_block.hpp"
#include "ops/support/row_launch.hpp"
#include "ops/support/vector_form.hpp"
#include "ops/support/work.hpp"
#include "ops/support/work_split.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kSimdRows = 8, kSimtRows = 4;  // of a work piece: their sums stay in registers or the L1 cache
constexpr std::int64_t kTile = 64, kItems = 128, kLanes = 8, kRowParts = 16;  // attention_decode_groups.cl
constexpr std::int64_t kMinKeys = 128;                                        // of a split
constexpr std::int64_t kMaxSplits = 64;

/// Attributes of the operation.
struct Decoding {
    double scale;
    std::int64_t window, causal;
};

/// Layout of the kernels' structs; must match cl_kernels/attention/attention_decode.clh.
struct Decode {
    std::int64_t q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, table_batch;
    std::int32_t queries, keys, heads, group, splits, page, pages, window, causal, unused = 0;
};
struct Append {
    std::int64_t k_batch, k_head, k_row, v_batch, v_head, v_row, to_k_batch, to_k_head, to_k_row, to_v_batch, to_v_head,
        to_v_row, table_batch;
    std::int32_t count, heads, keys, page, pages, unused = 0;
};
struct Combine {
    std::int64_t rows;
    std::int32_t splits, queries, heads, group;
};

std::int64_t keys_of(const View& k, const View& table) {
    return table.buffer ? table.shape[1] * k.shape[2] : k.shape[2];
}

Defines defines_of(DType stored, DType output, const View& k, const View& v, const View& lengths, const View& table) {
    Defines defines = storage_defines(stored, output);
    defines.set("D", k.shape[3]).set("E", v.shape[3]).set("INDEX_TYPE", cl_type(lengths.dtype));
    return defines.set("PAGED", table.buffer ? 1 : 0);
}

/// Partition: rows of a work piece, pieces, and splits of the keys.
struct SplitConfig {
    std::int64_t rows, pieces, splits;
};

SplitConfig split_config_of(const Decode& sizes, std::int64_t batch, std::int64_t max_rows, std::int64_t min_groups) {
    const std::int64_t rows = std::int64_t{sizes.queries} * sizes.group;
    SplitConfig config{.rows = std::min(rows, max_rows), .pieces = 0, .splits = 1};
    // Pieces of equal size, since padding rows cost as much as others.
    config.rows = ceil_div(rows, ceil_div(rows, config.rows));
    config.pieces = ceil_div(rows, config.rows) * sizes.heads;
    const std::int64_t max_splits = std::clamp<std::int64_t>(sizes.keys / kMinKeys, 1, kMaxSplits);
    if (config.pieces * batch * 2 <= min_groups)
        config.splits = std::min(max_splits, ceil_div(min_groups, config.pieces * batch));
    return config;
}

/// The simt kernel, with as many rows as fit its local memory.
struct GroupedKernel {
    Kernel kernel;
    std::int64_t items;
    LocalMemory shared;
};

std::int64_t local_elements(const View& q, const View& v, std::int64_t rows, std::int64_t items) {
    const std::int64_t width = v.shape[3], slices = std::max<std::int64_t>(1, items / width);
    return std::max(rows * (q.shape[3] + kTile + kTile * (kLanes + 1)), slices * rows * (width + 1) + rows);
}

GroupedKernel group_kernel(const View& q, const View& v, std::int64_t rows, const Defines& defines) {
    auto [kernel, group] = kernel_of_group(q.device(), to_size(kItems), [&](std::size_t items) {
        Defines group_defines = defines;
        group_defines.set("ITEMS", static_cast<std::int64_t>(items))
            .set("TILE", kTile)
            .set("LANES", std::min<std::int64_t>(kLanes, static_cast<std::int64_t>(items)))
            .set("ROW_PARTS", kRowParts);
        return Kernel(q.device(), {"attention_decode_groups.cl", "attention_decode_groups", group_defines});
    });
    const auto items = static_cast<std::int64_t>(group);
    return {std::move(kernel), items, local_memory(local_elements(q, v, rows, items), q.dtype)};
}

EpilogueFused launch_decode(const OperationViews& views, const Decoding& call) {
    const View &q = views.in(0), &k = views.in(1), &v = views.in(2), &lengths = views.in(3), &table = views.in(4),
               &y = views.out(0);
    if (y.numel() == 0) return EpilogueFused::no;
    const Device device = y.device();
    const std::int64_t batch = q.shape[0], keys = keys_of(k, table);
    Decode sizes{.q_batch = q.strides[0],
                 .q_head = q.strides[1],
                 .q_row = q.strides[2],
                 .k_batch = k.strides[0],
                 .k_head = k.strides[1],
                 .k_row = k.strides[2],
                 .v_batch = v.strides[0],
                 .v_head = v.strides[1],
                 .v_row = v.strides[2],
                 .table_batch = table.buffer ? table.strides[0] : 0,
                 .queries = narrow(q.shape[2]),
                 .keys = narrow(keys),
                 .heads = narrow(k.shape[1]),
                 .group = narrow(q.shape[1] / k.shape[1]),
                 .splits = 1,
                 .page = narrow(std::max<std::int64_t>(1, k.shape[2])),
                 .pages = narrow(k.shape[0]),
                 .window = narrow(call.window),
                 .causal = narrow(call.causal)};
    const double keys_read = static_cast<double>(batch * keys * sizes.heads);  // at most
    const auto width = static_cast<double>(k.shape[3] + v.shape[3]);
    const WorkScope scope(
        "cached_attention",
        {.flops = 2 * keys_read * static_cast<double>(sizes.queries * sizes.group) * width,
         .bytes = keys_read * width * static_cast<double>(size_of(k.dtype)) + bytes_of(q) + bytes_of(y),
         .f64 = q.dtype == DType::f64});
    const bool simd = is_simd(device);
    std::int64_t max_rows = simd ? kSimdRows : kSimtRows;
    constexpr std::int64_t max_local = std::int64_t{31} << 10;
    while (!simd && max_rows > 1 && local_elements(q, v, max_rows, kItems) > block_elements(device, q.dtype, max_local))
        max_rows /= 2;
    const SplitConfig pieces = split_config_of(sizes, batch, max_rows, std::int64_t{device.info().compute_units} * 4);
    sizes.splits = narrow(pieces.splits);
    const std::int64_t rows = q.shape[0] * q.shape[1] * q.shape[2];
    const View to = pieces.splits == 1 ? y : View::make(device, y.dtype, {pieces.splits, rows, v.shape[3] + 2});
    Defines defines = defines_of(k.dtype, y.dtype, k, v, lengths, table);
    defines.set("ROWS", pieces.rows).set("SPLIT_KEYS", pieces.splits > 1 ? 1 : 0);
    std::vector<Argument> arguments{sizes,
                                    real_argument(q.dtype, call.scale),
                                    q.argument(),
                                    k.argument(),
                                    v.argument(),
                                    lengths.argument(),
                                    or_else(table, lengths),
                                    to.argument()};
    if (simd) {
        defines.set("VW", vector_form(device, q.dtype).vector);
        launch({device, {"attention_decode.cl", "attention_decode", defines}},
               {{to_size(pieces.splits), to_size(pieces.pieces), to_size(batch)}, {1, 1, 1}}, arguments);
    } else {
        const GroupedKernel grouped = group_kernel(q, v, pieces.rows, defines);
        arguments.emplace_back(grouped.shared);
        launch(grouped.kernel,
               {.global = {to_size(pieces.splits * grouped.items), to_size(pieces.pieces), to_size(batch)},
                .local = {to_size(grouped.items), 1, 1}},
               arguments);
    }
    if (pieces.splits == 1) return EpilogueFused::no;
    const Combine combine{
        .rows = rows, .splits = sizes.splits, .queries = sizes.queries, .heads = sizes.heads, .group = sizes.group};
    Defines of_combine = real_defines(y.dtype);
    of_combine.set("E", v.shape[3]).set("APPEND", std::int64_t{0});
    launch({device, {"attention_cache.cl", "attention_combine", of_combine}},
           {.global = {to_size(v.shape[3]), to_size(rows), 1}}, {combine, to.argument(), y.argument()});
    return EpilogueFused::no;
}

struct Appending {};

EpilogueFused launch_append(const OperationViews& views, const Appending&) {
    const View &k = views.in(0), &v = views.in(1), &lengths = views.in(2), &table = views.in(3),
               &to_k = views.written(0), &to_v = views.written(1);
    if (!to_k.buffer || !to_v.buffer || k.numel() + v.numel() == 0) return EpilogueFused::no;
    const WorkScope scope("attention_append", work_each(0, k, k, v, v));
    const Append sizes{.k_batch = k.strides[0],
                       .k_head = k.strides[1],
                       .k_row = k.strides[2],
                       .v_batch = v.strides[0],
                       .v_head = v.strides[1],
                       .v_row = v.strides[2],
                       .to_k_batch = to_k.strides[0],
                       .to_k_head = to_k.strides[1],
                       .to_k_row = to_k.strides[2],
                       .to_v_batch = to_v.strides[0],
                       .to_v_head = to_v.strides[1],
                       .to_v_row = to_v.strides[2],
                       .table_batch = table.buffer ? table.strides[0] : 0,
                       .count = narrow(k.shape[2]),
                       .heads = narrow(k.shape[1]),
                       .keys = narrow(keys_of(to_k, table)),
                       .page = narrow(std::max<std::int64_t>(1, to_k.shape[2])),
                       .pages = narrow(to_k.shape[0])};
    Defines defines = defines_of(k.dtype, to_k.dtype, k, v, lengths, table);
    defines.set("APPEND", std::int64_t{1});
    launch({k.device(), {"attention_cache.cl", "attention_append", defines}},
           {.global = {to_size(k.shape[3] + v.shape[3]), to_size(k.shape[2] * k.shape[1]), to_size(k.shape[0])}},
           {sizes, k.argument(), v.argument(), to_k.argument(), to_v.argument(), lengths.argument(),
            or_else(table, lengths)});
    return EpilogueFused::no;
}

void require_rows(std::string_view function, const View& view) {
    if (view.shape[3] > 1 && view.strides[3] != 1)
        throw ShapeError(fmt::format("{}: expected a contiguous last axis", function));
}

void check_cache(std::string_view function, const CachedAttentionOperands& in, const View& like, std::int64_t batch) {
    require_rank(function, "k", in.k, 4, "B, heads, S, D");
    require_rank(function, "v", in.v, 4, "B, heads, S, E");
    require_shape(function, "v", in.v, {in.k.shape[0], in.k.shape[1], in.k.shape[2], in.v.shape[3]});
    require_alike(function, "k", in.k, "v", in.v);
    require_floating(function, "q", like);
    require_same_device(function, like, in.k);
    if (in.k.dtype != like.dtype && !(is_16bit_float(in.k.dtype) && like.dtype == DType::f32))
        throw TypeError(fmt::format("{}: expected k and v of q's type, or f16 or bf16 with q of f32, got {} and {}",
                                    function, name_of(in.k.dtype), name_of(like.dtype)));
    for (const View* view : {&in.k, &in.v}) require_rows(function, *view);
    require_shape(function, "lengths", in.lengths, {batch});
    require_dense(function, "lengths", in.lengths);
    require_same_device(function, like, in.lengths);
    if (in.lengths.dtype != DType::i32 && in.lengths.dtype != DType::i64)
        throw TypeError(fmt::format("{}: expected lengths of i32 or i64, got {}", function, name_of(in.lengths.dtype)));
    if (in.table.buffer) {
        require_rank(function, "the table", in.table, 2, "B, pages of a sample");
        require_shape(function, "the table", in.table, {batch, in.table.shape[1]});
        require_dense(function, "the table", in.table);
        require_alike(function, "lengths", in.lengths, "the table", in.table);
    } else if (in.k.shape[0] != batch) {
        throw ShapeError(fmt::format("{}: expected k of {} samples, got {}", function, batch, in.k.shape.str()));
    }
    constexpr std::int64_t max_size = std::int64_t{1} << 30;
    if (keys_of(in.k, in.table) > max_size || in.k.shape[0] > max_size)
        throw ShapeError(fmt::format("{}: expected at most 2^30 keys, got {}", function, in.k.shape.str()));
}

}  // namespace

LazyArray cached_attention(const CachedAttentionOperands& in, const CachedAttentionAttributes& options) {
    constexpr const char* name = "cached_attention";
    require_rank(name, "q", in.q, 4, "B, heads, L, D");
    check_cache(name, in, in.q, in.q.shape[0]);
    require_rows(name, in.q);
    if (in.q.shape[3] != in.k.shape[3])
        throw ShapeError(fmt::format("{}: expected q and k of one size along the last axis, got {} and {}", name,
                                     in.q.shape.str(), in.k.shape.str()));
    if (in.k.shape[1] == 0 || in.q.shape[1] % in.k.shape[1] != 0)
        throw ShapeError(fmt::format("{}: expected heads of q that are a multiple of those of k, got {} and {}", name,
                                     in.q.shape[1], in.k.shape[1]));
    constexpr std::int64_t max_size = std::int64_t{1} << 30;
    if (in.q.shape[1] * in.q.shape[2] > max_size)
        throw ShapeError(fmt::format("{}: expected at most 2^30 queries, got {}", name, in.q.shape.str()));
    return operation(
        name, launch_decode,
        Decoding{options.scale, std::clamp<std::int64_t>(options.window, 1, max_size), options.is_causal ? 1 : 0},
        {.reads = {in.q, in.k, in.v, in.lengths, in.table},
         .outputs = {{in.q.dtype, {in.q.shape[0], in.q.shape[2], in.q.shape[1], in.v.shape[3]}}}})[0];
}

void attention_append(const View& k, const View& v, const CachedAttentionOperands& cache) {
    constexpr const char* name = "attention_append";
    require_rank(name, "k", k, 4, "B, heads, T, D");
    check_cache(name, cache, k, k.shape[0]);
    require_shape(name, "k", k, {k.shape[0], cache.k.shape[1], k.shape[2], cache.k.shape[3]});
    require_shape(name, "v", v, {k.shape[0], cache.k.shape[1], k.shape[2], cache.v.shape[3]});
    require_alike(name, "k", k, "v", v);
    for (const View* view : {&k, &v}) require_rows(name, *view);
    operation(name, launch_append, Appending{},
              {.reads = {k, v, cache.lengths, cache.table}, .writes = {cache.k, cache.v}, .outputs = {}});
}

}  // namespace declivity::ops
