#include <declivity/ops/multi_tensor.hpp>

#include <algorithm>
#include <optional>

#include <declivity/runtime/error.hpp>
#include <fmt/format.h>

#include "ops/support/local_block.hpp"
#include "ops/support/memory_objects.hpp"
#include "ops/support/sharing.hpp"
#include "runtime/capture.hpp"

namespace declivity::ops {
namespace {

constexpr std::int64_t kPiece =
    4096;  // elements: large enough to hide the start-up cost of a work-group, small enough to balance the load
constexpr std::size_t kMultiTensorGroup = 128;
constexpr std::size_t kMaxRoles = 8;  // also the limit of memory objects, so that each tensor fits
// A table entry is the element offset * kMaxMemoryObjects + the index of the memory object.
constexpr std::int64_t kMaxMemoryObjects = 8;
constexpr std::size_t kRowEnd = 3;  // numbers of a row after its starts: elements, piece, index of the tensor

}  // namespace

struct MultiTensor::State {
    std::size_t roles = 0;
    std::optional<Device> device;
    DType dtype = DType::f32;
    /// The tensors of one launch.
    struct Group {
        MemoryObjects<kMaxRoles> memory;
        std::int64_t first = 0;  // row of the table
        std::int64_t pieces = 0;
    };
    std::vector<Group> groups;
    std::vector<std::int64_t> table;  // same as on the device: rows of pieces, then the tensors' indices
    Buffer table_on_device;
    std::int64_t pieces = 0;
    std::int64_t tensors = 0;
    std::int64_t elements = 0;  // of each role
    double element_bytes = 0;   // the mean of all roles

    /// Appends the rows of one tensor, in each of its roles, to the last group or to a new one.
    void add_rows(const std::vector<std::vector<View>>& lists, std::size_t tensor, std::int64_t number,
                  std::vector<std::int64_t>& rows);
    /// Uploads a table that differs from the previous one.
    void upload_table(std::vector<std::int64_t> rows);
};

void MultiTensor::State::add_rows(const std::vector<std::vector<View>>& lists, std::size_t tensor, std::int64_t number,
                                  std::vector<std::int64_t>& rows) {
    std::vector<std::int64_t> starts;
    const auto fits = [&](Group& group) {
        MemoryObjects<kMaxRoles> memory = group.memory;
        starts.clear();
        for (const auto& list : lists) {
            const auto memory_index = memory.index_of(list[tensor]);
            if (!memory_index) return false;
            starts.push_back(elements_before(list[tensor]) * kMaxMemoryObjects + *memory_index);
        }
        group.memory = memory;
        return true;
    };
    if (groups.empty() || !fits(groups.back())) {
        groups.push_back({.memory = {}, .first = pieces});
        (void)fits(groups.back());
    }
    const std::int64_t size = lists[0][tensor].numel();
    for (std::int64_t start = 0; start < size; start += kPiece) {
        for (const std::int64_t tensor_start : starts) rows.push_back(tensor_start + start * kMaxMemoryObjects);
        rows.push_back(std::min(kPiece, size - start));
        rows.push_back(pieces);
        rows.push_back(number);
        ++groups.back().pieces;
        ++pieces;
    }
}

void MultiTensor::State::upload_table(std::vector<std::int64_t> rows) {
    const bool same_place = table_on_device && table_on_device.device() == *device;
    if (rows == table && same_place) return;
    const std::size_t bytes = rows.size() * sizeof(std::int64_t);
    table.clear();  // until the new one has been created
    const CapturePause constant;
    // A pending kernel may still read the old table, so the copy is enqueued after it. A table used by a captured step
    // is not overwritten.
    if (!same_place || table_on_device.size() != bytes || is_shared(table_on_device))
        table_on_device = Buffer(*device, bytes);
    upload(table_on_device, 0, std::as_bytes(std::span(rows)));
    table = std::move(rows);
}

MultiTensor::MultiTensor(std::size_t roles) : state_(std::make_unique<State>()) {
    if (roles < 1 || roles > kMaxRoles)
        throw ValueError(fmt::format("MultiTensor: expected 1 to 8 roles, got {}", roles));
    state_->roles = roles;
}
MultiTensor::~MultiTensor() = default;
MultiTensor::MultiTensor(MultiTensor&&) noexcept = default;
MultiTensor& MultiTensor::operator=(MultiTensor&&) noexcept = default;
void MultiTensor::release() { state_->groups.clear(); }
std::int64_t MultiTensor::pieces() const { return state_->pieces; }
View MultiTensor::indices() const {
    (void)device();
    return {.buffer = state_->table_on_device,
            .offset = state_->pieces * static_cast<std::int64_t>(state_->roles + kRowEnd),
            .dtype = DType::i64,
            .shape = {state_->tensors},
            .strides = {1}};
}
Device MultiTensor::device() const {
    if (!state_->device) throw ValueError("MultiTensor::device: expected tensors, got none: call set first");
    return *state_->device;
}
Work MultiTensor::work(double flops, double accesses) const {
    const auto elements = static_cast<double>(state_->elements);
    return {.flops = flops * elements,
            .bytes = accesses * elements * state_->element_bytes,
            .f64 = state_->dtype == DType::f64};
}
std::size_t MultiTensor::roles() const { return state_->roles; }
DType MultiTensor::dtype() const { return state_->dtype; }

void MultiTensor::set(const std::vector<std::vector<View>>& lists, const std::vector<std::int64_t>& indices) {
    State& state = *state_;
    if (lists.size() != state.roles || lists[0].empty())
        throw ValueError(
            fmt::format("MultiTensor::set: expected {} non-empty lists, got {}", state.roles, lists.size()));
    for (const auto& list : lists)
        if (list.size() != lists[0].size())
            throw ValueError(fmt::format("MultiTensor::set: expected equally many tensors in each role, got {} and {}",
                                         lists[0].size(), list.size()));
    if (!indices.empty() && indices.size() != lists[0].size())
        throw ValueError(fmt::format("MultiTensor::set: expected as many indices as tensors, {}, got {}",
                                     lists[0].size(), indices.size()));
    const auto number_of = [&](std::size_t tensor) {
        return indices.empty() ? static_cast<std::int64_t>(tensor) : indices[tensor];
    };
    state.device = lists[0][0].device();
    state.dtype = lists[0][0].dtype;
    std::vector<std::int64_t> table;
    state.groups.clear();
    state.pieces = 0;
    state.elements = 0;
    state.element_bytes = 0;
    for (const auto& list : lists) {
        require_real("MultiTensor::set", "tensors", list[0].dtype);
        state.element_bytes += static_cast<double>(size_of(list[0].dtype)) / static_cast<double>(lists.size());
    }
    for (std::size_t tensor = 0; tensor < lists[0].size(); ++tensor) {
        const std::int64_t size = lists[0][tensor].numel();
        state.elements += size;
        for (const auto& list : lists) {
            const View& view = list[tensor];
            require_dense("MultiTensor::set", "tensor", view);
            require_alike("MultiTensor::set", "the first tensor of a role", list[0], "another", view);
            require_same_device("MultiTensor::set", lists[0][0], view);
            if (view.numel() != size)
                throw ShapeError(fmt::format("MultiTensor::set: expected equal sizes in all roles, got {} and {}",
                                             lists[0][tensor].shape.str(), view.shape.str()));
        }
        state.add_rows(lists, tensor, number_of(tensor), table);
    }
    state.tensors = static_cast<std::int64_t>(lists[0].size());
    for (std::size_t tensor = 0; tensor < lists[0].size(); ++tensor) table.push_back(number_of(tensor));
    if (Capture* const capture = Capture::current())
        for (const auto& list : lists)
            for (const View& view : list) capture->uses(view.buffer);
    state.upload_table(std::move(table));
}

void MultiTensor::launch(const KernelSpec& spec, std::span<const Argument> further) const {
    const State& state = *state_;
    launch(
        [&](std::size_t items) {
            Defines defines = real_defines(state.dtype);
            defines.set("ROLES", static_cast<std::int64_t>(state.roles)).set("GROUP", static_cast<std::int64_t>(items));
            return Kernel(*state.device, {spec.file, spec.name, defines.append(spec.defines)});
        },
        further);
}

void MultiTensor::launch(const std::function<Kernel(std::size_t items)>& make,
                         std::span<const Argument> further) const {
    const State& state = *state_;
    if (!state.device) throw ValueError("MultiTensor::launch: expected tensors, got none: call set first");
    const bool simd = state.device->kernel_style() == KernelStyle::simd;
    const auto [kernel, group_size] = kernel_of_group(*state.device, simd ? 1 : kMultiTensorGroup, make);
    for (const State::Group& group : state.groups) {
        if (group.pieces == 0) continue;
        const BufferArgument table{state.table_on_device,
                                   group.first * static_cast<std::int64_t>(state.roles + kRowEnd),
                                   sizeof(std::int64_t)};
        const auto memory = group.memory.arguments();
        std::vector<Argument> arguments{table};
        arguments.insert(arguments.end(), memory.begin(), memory.end());
        arguments.insert(arguments.end(), further.begin(), further.end());
        declivity::launch(
            kernel,
            {.global = {static_cast<std::size_t>(group.pieces) * group_size, 1, 1}, .local = {group_size, 1, 1}},
            arguments);
    }
}

}  // namespace declivity::ops
