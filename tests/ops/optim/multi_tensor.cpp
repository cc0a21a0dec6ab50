// Multi-tensor kernels: changing lists, tensors in one and in several memory objects.
#include <vector>

#include <declivity/ops/clip.hpp>
#include <declivity/ops/copy.hpp>
#include <declivity/ops/finite.hpp>
#include <declivity/runtime/error.hpp>
#include <doctest/doctest.h>
#include <tests/ops/optim/multi_tensor_fixture.hpp>

#include "runtime/capture.hpp"

using namespace declivity;
using namespace declivity::test;
using ops::MultiTensor;
using ops::View;

TEST_CASE("multi tensor: lists may change between launches and be freed") {
    const Device device = fresh_device();
    MultiTensor tensors(1);
    const auto norm = [&](const std::vector<View>& list) {
        tensors.set({list});
        return values(Tensor(ops::clip_norm(tensors, 1e30)))[0];
    };
    const auto constant = [&](std::int64_t size, double value) {
        const View view = View::make(device, DType::f32, {size});
        ops::fill(view, value);
        return view;
    };
    const View a = constant(9, 1), b = constant(4, 2), c = constant(16, 3);
    CHECK(norm({a}) == 3);
    CHECK(norm({a, b}) == doctest::Approx(5));
    CHECK(norm({b, a}) == doctest::Approx(5));
    CHECK(norm({c}) == 12);
    CHECK(norm({c, a, b}) == doctest::Approx(13));
    CHECK(tensors.pieces() == 3);
    // The same shapes in other memory, while earlier launches may still run.
    for (int i = 0; i < 20; ++i) CHECK(norm({constant(9, i)}) == 3 * i);
    const long handles = a.buffer.use_count();
    tensors.set({{a, b}});
    CHECK(a.buffer.use_count() > handles);
    tensors.release();
    CHECK(a.buffer.use_count() == handles);
    CHECK(norm({a, b}) == doctest::Approx(5));
}

TEST_CASE("multi tensor: a capture keeps the memory of a table alive") {
    const Device device = fresh_device();
    const auto constant = [&](double value) {
        const View view = View::make(device, DType::f32, {64});
        ops::fill(view, value);
        return view;
    };
    CommandList command_list;
    {
        MultiTensor tensors(2);
        const View first = constant(1), second = constant(2), first_gradient = constant(10),
                   second_gradient = constant(20), progress = View::make(device, DType::f32, {2}),
                   guard = View::make(device, DType::i32, {2});
        ops::fill(progress, 0.5);
        ops::fill(guard, 0);
        Capture capture(device);
        tensors.set({{first, second}, {first_gradient, second_gradient}});
        descent_step(tensors, progress, guard);
        command_list = capture.finish();
        CHECK(values(Tensor(second)) == std::vector<double>(64, 2 - 0.5 * 20));
    }
    std::vector<View> others;
    for (int i = 0; i < 8; ++i) others.push_back(constant(i));
    command_list.replay();
    for (int i = 0; i < 8; ++i)
        CHECK(values(Tensor(others[static_cast<std::size_t>(i)])) == std::vector<double>(64, i));
}

TEST_CASE("multi tensor: the tensors may move to another device") {
    MultiTensor tensors(1);
    for (const Device& device : {fresh_device(), fresh_device()}) {
        const View view = View::make(device, DType::f32, {100});
        ops::fill(view, 2);
        tensors.set({{view}});
        CHECK(tensors.device() == device);
        CHECK(values(Tensor(ops::clip_norm(tensors, 1e30)))[0] == 20);
    }
}

TEST_CASE("multi tensor: roles may use different memory objects per tensor") {
    const Device device = fresh_device();
    std::vector<View> parameters, gradients;
    for (std::int64_t i = 0; i < 14; ++i) {  // more memory objects than a launch supports
        parameters.push_back(View::make(device, DType::f32, {100 + i}));
        gradients.push_back(i % 2 == 0 ? View::make(device, DType::f32, {100 + i})
                                       : copy_on_device(device, DType::f32, {100 + i}));
        ops::fill(parameters.back(), static_cast<double>(i));
        ops::fill(gradients.back(), static_cast<double>(1 + i));
    }
    MultiTensor tensors(2);
    tensors.set({parameters, gradients});
    descent_step(tensors, progress_view(device, DType::f32, 0.5, 1), guard_view(device));
    for (std::size_t i = 0; i < parameters.size(); ++i)
        CHECK(values(Tensor(parameters[i])) ==
              std::vector<double>(100 + i, static_cast<double>(i) - 0.5 * static_cast<double>(1 + i)));
}

TEST_CASE("multi tensor: mismatched lists are refused") {
    const View a = View::make(device(), DType::f32, {10}), b = View::make(device(), DType::f32, {11}),
               integers = View::make(device(), DType::i32, {10});
    CHECK_THROWS_AS(MultiTensor(0), ValueError);
    CHECK_THROWS_AS(MultiTensor(9), ValueError);
    MultiTensor single_list(1), two_lists(2);
    CHECK_THROWS_AS((void)single_list.device(), ValueError);
    CHECK_THROWS_AS(single_list.launch({"clip.cl", "clip_scale"}, {}), ValueError);
    CHECK_THROWS_AS(single_list.set({}), ValueError);
    CHECK_THROWS_AS(single_list.set({{}}), ValueError);
    CHECK_THROWS_AS(single_list.set({{a}, {a}}), ValueError);
    CHECK_THROWS_AS(two_lists.set({{a, b}, {a}}), ValueError);
    CHECK_THROWS_AS(two_lists.set({{a}, {b}}), ShapeError);
    CHECK_THROWS_AS(two_lists.set({{a}, {integers}}), TypeError);
    CHECK_THROWS_AS(single_list.set({{a, View::make(device(), DType::f16, {10})}}), TypeError);
    CHECK_THROWS_AS(single_list.set({{integers}}), TypeError);
    CHECK_THROWS_AS(single_list.set({{ops::sliced(a, 0, 0, 5, 2)}}), ShapeError);
    CHECK_THROWS_AS(single_list.set({{a, View::make(fresh_device(), DType::f32, {10})}}), DeviceError);
}
