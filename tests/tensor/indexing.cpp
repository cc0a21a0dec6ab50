// no-oclgrind: it is about which elements are meant; its kernels are those of other tests
// x[2], x[Slice(1, 3)], x[{0, Slice(), -1}]: read and written, with and without a graph.
#include <functional>
#include <string>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/error_message.hpp>
#include <tests/support/gradient_check.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

/// Python's range(start, stop, step) for each axis of (4, 5, 6), and which axes are removed.
struct IndexCase {
    std::vector<Index> indices;
    std::array<std::vector<std::int64_t>, 3> indices_by_axis;
    Shape shape;
};

std::vector<IndexCase> index_cases() {
    const std::vector<std::int64_t> a{0, 1, 2, 3}, b{0, 1, 2, 3, 4}, c{0, 1, 2, 3, 4, 5};
    return {{{2}, {{{2}, b, c}}, {5, 6}},
            {{-1}, {{{3}, b, c}}, {5, 6}},
            {{Slice(1, 3)}, {{{1, 2}, b, c}}, {2, 5, 6}},
            {{Slice(-2)}, {{{2, 3}, b, c}}, {2, 5, 6}},
            {{Slice(), 4}, {{a, {4}, c}}, {4, 6}},
            {{0, Slice({}, {}, 2), Slice(1, -1)}, {{{0}, {0, 2, 4}, {1, 2, 3, 4}}}, {3, 4}},
            {{Slice(1, {}, 3), 1, -6}, {{{1}, {1}, {0}}}, {1}},
            {{3, 2, 1}, {{{3}, {2}, {1}}}, {}},
            {{Slice(3, 1)}, {{{}, b, c}}, {0, 5, 6}},
            {{Slice(2, 100), Slice(-100, 2)}, {{{2, 3}, {0, 1}, c}}, {2, 2, 6}},
            {{}, {{a, b, c}}, {4, 5, 6}}};
}

TensorPart at(const Tensor& x, const std::vector<Index>& indices) {
    switch (indices.size()) {
        case 0:
            return x[{}];
        case 1:
            return x[indices[0]];
        case 2:
            return x[{indices[0], indices[1]}];
        default:
            return x[{indices[0], indices[1], indices[2]}];
    }
}

std::size_t flat_index(std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<std::size_t>((i * 5 + j) * 6 + k);
}

void visit(const IndexCase& index_case, const std::function<void(std::size_t)>& call) {
    for (const auto i : index_case.indices_by_axis[0])
        for (const auto j : index_case.indices_by_axis[1])
            for (const auto k : index_case.indices_by_axis[2]) call(flat_index(i, j, k));
}

}  // namespace

TEST_CASE("indexing: reads the same elements as Python") {
    const Tensor x = random_tensor({4, 5, 6}, 1);
    const Values in = values(x);
    for (const IndexCase& index_case : index_cases()) {
        Values expected;
        visit(index_case, [&](std::size_t i) { expected.push_back(in[i]); });
        const TensorPart part = at(x, index_case.indices);
        CHECK(part.shape() == index_case.shape);
        CHECK(values(part) == expected);
        CHECK(values(Tensor(part) * 2).size() == expected.size());
    }
    CHECK(values(x[1][2]) == values(x[{1, 2}]));
    CHECK(values(x[Slice(1, 4)][1][{Slice({}, {}, 2), 3}]) == values(x[{2, Slice({}, {}, 2), 3}]));
    CHECK(values(x[Slice({}, {}, 2)][Slice(1)]) == values(x[Slice(2, 3)]));
    CHECK(x[{3, 2, 1}].item<float>() == in[flat_index(3, 2, 1)]);
    CHECK(error_message<Error>([&] { (void)x[4]; }) ==
          "operator[]: expected an index from -4 to 3 along axis 0, got 4");
    CHECK(error_message<Error>([&] {
              (void)x[{0, -6}];
          }) == "operator[]: expected an index from -5 to 4 along axis 1, got -6");
    CHECK(error_message<Error>([&] {
              (void)x[{0, 0, 0, 0}];
          }) == "operator[]: expected at most one index for each axis of [4, 5, 6], got 4");
    CHECK(error_message<Error>([&] { (void)x[Slice(0, 2, 0)]; }) == "operator[]: expected a step of at least 1, got 0");
    CHECK(error_message<Error>([&] { (void)Tensor()[0]; }) == "operator[]: expected a tensor, got an undefined one");
}

TEST_CASE("indexing: writes these elements and no others, with and without a graph") {
    const Tensor from = random_tensor({4, 5, 6}, 1, widest());
    for (const bool graph : {false, true}) {
        CAPTURE(graph);
        for (const IndexCase& index_case : index_cases()) {
            const Tensor value = random_tensor(index_case.shape, 2, widest());
            const auto fresh = [&] { return graph ? Tensor(from).clone().set_requires_grad() * 1.0 : from.clone(); };
            const Values in = values(from), assigned = values(value);
            Values expected = in, added = in, halved = in, filled = in;
            std::size_t next = 0;
            visit(index_case, [&](std::size_t i) {
                expected[i] = assigned[next];
                added[i] = as_type(in[i] + assigned[next++], widest());
                halved[i] = in[i] / 2;
                filled[i] = 7;
            });
            Tensor x = fresh();
            at(x, index_case.indices) = value;
            CHECK(values(x) == expected);
            CHECK(x.requires_grad() == graph);
            x = fresh();
            at(x, index_case.indices) += value;
            CHECK(values(x) == added);
            x = fresh();
            at(x, index_case.indices) *= 0.5;
            CHECK(values(x) == halved);
            x = fresh();
            at(x, index_case.indices) = 7;
            CHECK(values(x) == filled);
            x = fresh();
            at(x, index_case.indices) = at(fresh(), index_case.indices);  // a part of another
            CHECK(values(x) == in);
        }
    }
    Tensor x = zeros({2, 3}, {DType::i32});
    x[0] = tensor({1, 2, 3}, {3});                    // another type, and
    x[{Slice(), 1}] -= tensor({5}, {1}, DType::i32);  // another shape
    CHECK(values(x) == Values{1, -3, 3, 0, -5, 0});
    x[1][2] = 9;
    CHECK(values(x) == Values{1, -3, 3, 0, -5, 9});
    x[1] = x[0];
    CHECK(values(x) == Values{1, -3, 3, 1, -3, 3});
    CHECK(error_message<Error>([&] { x[0] = zeros({2}); }).find("[2]") != std::string::npos);
    x[0] = tensor({1.9, -2.7, 0.5}, {3});  // truncated, as by .to()
    CHECK(values(x[0]) == Values{1, -2, 0});
    CHECK_THROWS_AS(x[0] = 2.7, ValueError);
    const std::string fits = ": expected a result that fits the tensor's type, i32, got one of f32";
    CHECK(error_message<Error>([&] { x[0] += 0.5; }) == "operator+=" + fits);
    CHECK(error_message<Error>([&] { x[{1, 1}] -= tensor({0.5}, {}); }) == "operator-=" + fits);
    CHECK(error_message<Error>([&] { x[Slice()] *= 0.5; }) == "operator*=" + fits);
    CHECK(error_message<Error>([&] { x[0] *= Tensor(); }) == "operator*=: expected a tensor, got an undefined one");
    CHECK(error_message<Error>([&] { x[1] /= 2; }) ==
          "operator/=: expected a tensor of f32, f64, f16 or bf16, got i32");
    CHECK_THROWS_AS(x[1] /= 2, TypeError);
    CHECK_THROWS_AS((x > 0)[0] += 1, TypeError);
    x[1] *= 2;
    CHECK(values(x) == Values{1, -2, 0, 2, -6, 6});
}

TEST_CASE("indexing: parts of an expanded tensor are not written, with and without a graph") {
    for (const bool graph : {false, true}) {
        CAPTURE(graph);
        const Tensor b = ones({3}).set_requires_grad(graph);
        Tensor e = expand(b * 1, {4, 3});
        const char* expected =
            "operator[]=: expected a tensor whose elements do not share memory, got shape [4, 3] with strides "
            "[0, "
            "1] (write to a clone() of an expanded tensor)";
        CHECK(error_message<Error>([&] { e[1] = 5; }) == expected);
        CHECK(error_message<Error>([&] { e[1] = zeros({3}); }) == expected);
        CHECK(error_message<Error>([&] { e[{1, 0}] += 5; }) == expected);
        CHECK(error_message<Error>([&] { e[Slice()] = 5; }) == expected);
        CHECK(sum(e).item<float>() == 12);
        e = e.clone();
        e[1] = 5;
        CHECK(sum(e).item<float>() == 24);
        Tensor expanded = expand(b * 1, {1, 3});  // no axis is broadcast
        expanded[0] = 5;
        CHECK(sum(expanded).item<float>() == 15);
    }
}

TEST_CASE("indexing: refused right-hand sides have an error message") {
    const Tensor leaf = random_tensor({4, 3}, 1).set_requires_grad();
    Tensor y = leaf * 2;
    CHECK(error_message<Error>([&] { y[0] = select(y, 0, 1); }) ==
          "operator[]=: expected a right-hand side with memory of its own when grad mode is on, got one of shape "
          "[3] that is a view of x (select, slice, reshape, ...); write x[...] in its place (y[0] = y[1]), or a "
          "clone() of it made in a line before");
    const Tensor copied = select(y, 0, 1).clone();
    y[0] = copied;
    CHECK(values(y[0]) == values(leaf[1] * 2));
    y[2] = y[3];
    CHECK(values(y[2]) == values(leaf[3] * 2));
}

TEST_CASE("indexing: gradients of reads and writes") {
    if (!device().info().fp64) return;
    for (const IndexCase& index_case : index_cases()) {
        const auto call = [&](const std::vector<Tensor>& in) {
            Tensor x = in[0] * 1.0;
            at(x, index_case.indices) = in[1] * at(in[0], index_case.indices);
            at(x, index_case.indices) += square(in[1]);
            return x * x;
        };
        if (index_case.shape.numel() == 0) continue;
        CHECK(gradient_difference(call, {random_tensor({4, 5, 6}, 1, DType::f64),
                                         random_tensor(index_case.shape, 2, DType::f64)}) == "");
    }
    // Row by row, each from the previous one; and repeated.
    const auto path = [](const std::vector<Tensor>& in) {
        Tensor x = zeros({5, 3}, {DType::f64});
        x[0] = in[0];
        for (int t = 1; t < 5; ++t) x[t] = tanh(x[t - 1] * in[1]);
        return x;
    };
    const std::vector<Tensor> inputs{random_tensor({3}, 1, DType::f64), random_tensor({3}, 2, DType::f64)};
    CHECK(gradient_difference(path, inputs) == "");
    // The same without writes.
    const auto rows = [](const std::vector<Tensor>& in) {
        std::vector<Tensor> all{in[0]};
        for (int t = 1; t < 5; ++t) all.push_back(tanh(all.back() * in[1]));
        for (Tensor& row : all) row = reshape(row, {1, 3});
        return concat(all, 0);
    };
    const auto second = [&](const std::function<Tensor(const std::vector<Tensor>&)>& call) {
        std::vector<Tensor> leaves;
        for (const Tensor& input : inputs) leaves.push_back(input.clone().set_requires_grad());
        const Tensor first = grad({sum(square(call(leaves)))}, leaves, {.create_graph = true})[1];
        return values(grad({sum(square(first))}, leaves)[0]);
    };
    CHECK(difference(second(path), second(rows), {1e-12, 1e-12}) == "");
}

TEST_CASE("indexing: a part sees writes; another view forbids them in a graph") {
    Tensor leaf = random_tensor({4, 3}, 1).set_requires_grad();
    Tensor x = leaf * 2;
    const auto row = x[1];
    const Tensor alias = x[{1, Slice(1)}];
    x[1] = 5;
    CHECK(values(row) == Values{5, 5, 5});
    CHECK(values(alias) == Values{5, 5});
    x += 1;
    CHECK(values(row) == Values{6, 6, 6});
    sum(row * row).backward();
    const Values gradient = values(leaf.grad());
    for (std::size_t i = 0; i < 12; ++i) CHECK(gradient[i] == 0);
    // After a complete write the row leads back to the leaf.
    Tensor y = leaf * 2;
    const auto second = y[2];
    y *= 3;
    leaf.zero_grad();
    sum(second).backward();
    CHECK(values(leaf.grad()) == Values{0, 0, 0, 0, 0, 0, 6, 6, 6, 0, 0, 0});
    // One part from another of the same tensor.
    Tensor v = leaf * 2;
    const Values old = values(v[3]);
    v[0] = v[3];
    v[1] = v[2];
    CHECK(values(v[0]) == old);
    CHECK(values(v[1]) == values(v[2]));
    CHECK(values(v[3]) == old);
    leaf.zero_grad();
    sum(v).backward();
    CHECK(values(leaf.grad()) == Values{0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4});
    // reshape() of a part is not tracked as a part.
    Tensor z = leaf * 2;
    const Tensor reshaped = reshape(z[0], {3, 1});
    CHECK(error_message<Error>([&] { z[1] = 0; }).starts_with("operator[]=: expected a tensor with unshared memory"));
    CHECK(error_message<Error>([&] {
              leaf[0] = 0;
          }).starts_with("operator[]=: expected a tensor that does not require a"));
    {
        const NoGrad no_grad;
        leaf[0] = 0;
        CHECK(values(leaf[0]) == Values{0, 0, 0});
    }
    // Earlier saved tensors are unchanged.
    Tensor w = leaf * 2;
    const Tensor product = sum(w[3] * w[3]);
    const Values before = values(w[3]);
    w[3] = 100;
    leaf.zero_grad();
    product.backward();
    const Values after = values(leaf.grad());
    for (std::size_t i = 0; i < 3; ++i) CHECK(after[9 + i] == doctest::Approx(4 * before[i]));
}

TEST_CASE("indexing: row-by-row writes cost a row each, and are captured") {
    Tensor leaf = ones({2048}).set_requires_grad();
    const auto fill = [&](bool shared_input) {
        Tensor x = zeros({24, 2048});
        std::vector<Tensor> all;
        for (int t = 0; t < 24; ++t) {
            x[t] = t == 0 ? leaf * 1.0 : x[t - 1] + leaf;
            if (shared_input) all.push_back(square(x));  // saves x for its gradient
        }
        return shared_input ? all.back() + x : x;
    };
    const auto peak_of = [&](bool shared_input) {
        device().synchronize();
        device().reset_peak_memory();
        const auto before = device().memory().in_use;
        const Tensor x = fill(shared_input);
        (void)x.view();
        device().synchronize();
        return device().memory().peak - before;
    };
    const std::uint64_t tensor_bytes = 24 * 2048 * sizeof(float);
    CHECK(peak_of(false) < 2 * tensor_bytes);  // in place, since it is unshared
    CHECK(peak_of(true) >= 2 * tensor_bytes);
    sum(fill(false)).backward();
    CHECK(values(leaf.grad()) == Values(2048, 300));

    CapturedStep step = capture([](const std::vector<Tensor>& in) {
        Tensor cache = in[0] * 2;
        cache[{Slice(), 1}] = in[1];
        cache[0] += cache[1];
        return std::vector{cache};
    });
    for (std::uint64_t round = 0; round < 4; ++round) {
        const Tensor a = random_tensor({2, 3}, round), b = random_tensor({2}, round + 9);
        Tensor plain = a * 2;
        plain[{Slice(), 1}] = b;
        plain[0] += plain[1];
        CHECK(values(step({a, b})[0]) == values(plain));
    }
}

TEST_CASE("indexing: parts of empty tensors begin anywhere") {
    Tensor x = zeros({0, 2});
    x[{Slice(), 1}] = 1;
    slice(x, 1, 1, 2).fill_(3);
    CHECK(values(x[{Slice(), 1}]).empty());
    CHECK(select(ones({0, 3}), 1, 2).to_vector<float>().empty());
    Tensor p = zeros({0, 2}).set_requires_grad();
    Tensor y = p * 1;
    y[{Slice(), Slice(1, 2)}] += 1;
    (sum(y) + sum(slice_scatter(p, zeros({0, 1}), 1, 1, 2))).backward();
    CHECK(p.grad().shape() == Shape{0, 2});
}
