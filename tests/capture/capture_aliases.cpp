// no-oclgrind: it replays kernels that other tests launch there
//
// Captured steps whose inputs, results and tensors alias each other.
#include <declivity/capture/capture.hpp>

#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>

#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using V = std::vector<float>;
Tensor T(int seed, const Shape& shape = {8, 8}) {
    return random_tensor(shape, 1000 + static_cast<std::uint64_t>(seed));
}
V vec(const Tensor& x) { return x.to_vector<float>(); }

}  // namespace

TEST_CASE("capture aliases: the same tensor passed for two inputs counts as two inputs") {
    auto f = [](const std::vector<Tensor>& in) { return std::vector{in[0] - in[1] * 2.0}; };
    auto r = capture(f);
    Tensor a = T(1), b = T(2), c = T(3);
    CHECK(vec(r({a, a})[0]) == vec(f({a, a})[0]));
    CHECK(vec(r({b, c})[0]) == vec(f({b, c})[0]));
}

TEST_CASE("capture aliases: an input that is returned is the tensor that was passed") {
    auto f = [](const std::vector<Tensor>& in) { return std::vector{in[1]}; };
    auto r = capture(f);
    Tensor a = T(1), b = T(2), c = T(3);
    r({a, a});
    CHECK(vec(r({b, c})[0]) == vec(c));
}

TEST_CASE("capture aliases: an input that is also a tensor of the step does not replace that tensor") {
    Tensor w = T(1), y = T(2);
    auto f = [&](const Tensor& x) { return x - w * 2.0; };
    auto r = capture(f);
    CHECK(vec(r(w)) == vec(f(w)));
    CHECK(vec(r(y)) == vec(f(y)));
}

TEST_CASE("capture aliases: a result may be the next input") {
    Tensor w = T(1, {64, 64});
    auto f = [&](const Tensor& x) { return tanh(matmul(x, w)); };
    auto r = capture(f);
    Tensor p = T(2, {64, 64}), q = p;
    for (int i = 0; i < 4; ++i) {
        CAPTURE(i);
        p = f(p);
        q = r(q);
        CHECK(vec(p) == vec(q));
    }
}

TEST_CASE("capture aliases: a result may be the next input of a step with temporaries") {
    Tensor w = T(1, {64, 64});
    auto f = [&](const Tensor& x) {
        Tensor s = x;
        for (int i = 0; i < 3; ++i) s = matmul(tanh(s), w);
        return s + x;
    };
    auto r = capture(f);
    Tensor p = T(2, {64, 64}), q = p;
    for (int i = 0; i < 4; ++i) {
        CAPTURE(i);
        p = f(p);
        q = r(q);
        CHECK(vec(p) == vec(q));
    }
}

TEST_CASE("capture aliases: results may be swapped as the next inputs") {
    auto f = [&](const std::vector<Tensor>& in) { return std::vector{in[1] * 2.0, in[0] + 1.0}; };
    auto r = capture(f);
    std::vector<Tensor> p{T(1), T(2)}, q = p;
    for (int i = 0; i < 4; ++i) {
        CAPTURE(i);
        p = f(p);
        q = r(q);
        CHECK(vec(p[0]) == vec(q[0]));
        CHECK(vec(p[1]) == vec(q[1]));
    }
}

TEST_CASE("capture aliases: an input written in place is written at any location, after its pending readers") {
    auto f = [&](const Tensor& x) {
        Tensor(x).mul_(2.0);
        return x.clone() + 1.0;
    };
    auto r = capture(f);
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        Tensor a = T(i), b = a.clone();
        Tensor pa = a * 3.0, pb = b * 3.0;
        Tensor ya = f(a), yb = r(b);
        CHECK(vec(pa) == vec(pb));
        CHECK(vec(ya) == vec(yb));
        CHECK(vec(a) == vec(b));
    }
}

TEST_CASE("capture aliases: a non-contiguous input is written in place too") {
    auto f = [&](const Tensor& x) {
        Tensor(x).mul_(2.0);
        return x.clone() + 1.0;
    };
    auto r = capture(f);
    for (int i = 0; i < 3; ++i) {
        CAPTURE(i);
        Tensor a = T(i), b = a.clone();
        Tensor ya = f(transpose(a, 0, 1)), yb = r(transpose(b, 0, 1));
        CHECK(vec(ya) == vec(yb));
        CHECK(vec(a) == vec(b));
    }
}

TEST_CASE("capture aliases: a graph detects that a replay has written its input") {
    auto f = [&](const Tensor& x) {
        Tensor(x).mul_(2.0);
        return x.clone();
    };
    auto r = capture(f);
    r(T(0));
    Tensor w = T(5);
    w.set_requires_grad();
    Tensor x = T(6);
    Tensor l = sum(x * w);
    r(x);
    CHECK_THROWS(l.backward());
}

TEST_CASE("capture aliases: an input that requires a gradient runs eagerly if allowed, also after replays") {
    auto f = [&](const Tensor& x) { return sum(x * x); };
    auto r = capture(f, {.when_refused = WhenRefused::run});
    r(T(1));
    r(T(2));
    Tensor l = T(3);
    l.set_requires_grad();
    CHECK_NOTHROW(r(l).backward());
    CHECK(l.grad().defined());
}

TEST_CASE("capture aliases: a non-contiguous input that requires a gradient keeps its graph") {
    auto f = [&](const Tensor& x) { return sum(x * x); };
    auto r = capture(f, {.when_refused = WhenRefused::run});
    Tensor l = T(3);
    l.set_requires_grad();
    CHECK_NOTHROW(r(transpose(l, 0, 1)).backward());
    CHECK(l.grad().defined());
}

TEST_CASE("a step whose values are computed by another thread is not replayed without them") {
    Tensor w = T(1), x = T(2);
    auto f = [&](const Tensor& in) {
        Tensor h = in * 2.0 + w;
        std::thread([&] { (void)w.view(); }).join();
        return h + 1.0;
    };
    auto r = capture(f);
    for (int i = 0; i < 3; ++i) {
        Tensor a = T(10 + i);
        CHECK(vec(r(a)) == vec(f(a)));
    }
}

TEST_CASE("capture aliases: a step that writes other memory from call to call is detected") {
    int n1 = 0, n2 = 0;
    Tensor h1 = zeros({8, 8}), h2 = zeros({8, 8});
    auto f1 = [&](const Tensor& x) {
        Tensor(slice(h1, 0, n1, n1 + 1)).copy_(x);
        ++n1;
        return x * 2.0;
    };
    auto f2 = [&](const Tensor& x) {
        Tensor(slice(h2, 0, n2, n2 + 1)).copy_(x);
        ++n2;
        return x * 2.0;
    };
    auto r = capture(f2, {.when_refused = WhenRefused::run, .warmup_captures = 2});
    for (int i = 0; i < 6; ++i) {
        f1(T(i, {1, 8}));
        r(T(i, {1, 8}));
    }
    CHECK(vec(h1) == vec(h2));
}

TEST_CASE("capture aliases: an input may be written by the step") {
    // First another tensor, then the one that is written, and the other way round.
    auto run = [](bool rec, int first) {
        Tensor w = T(1), u = T(2);
        std::vector<V> out;
        auto f = [&](const Tensor& x) {
            Tensor t = x * 1.0;
            Tensor(w).add_(x);
            return t + w;
        };
        auto r = capture(f);
        for (int i = 0; i < 5; ++i) {
            const Tensor& x = i % 2 == first ? u : w;
            out.push_back(vec(rec ? r(x) : f(x)));
            out.push_back(vec(w));
        }
        return out;
    };
    for (const int first : {0, 1}) CHECK(run(false, first) == run(true, first));
}

TEST_CASE("capture aliases: a refused step still writes its input") {
    auto f = [&](const Tensor& x) {
        Tensor(x).mul_(2.0);
        return Tensor::from(V{sum(x).item<float>()}, {1});
    };
    auto r = capture(f, {.when_refused = WhenRefused::run});
    Tensor a = T(1), b = a.clone();
    f(transpose(a, 0, 1));
    r(transpose(b, 0, 1));
    CHECK(vec(a) == vec(b));
}

TEST_CASE("capture aliases: values pending on moments and statistics have the elements from before the replay") {
    auto run = [](bool rec) {
        std::vector<V> out;
        Tensor w = T(1);
        w.set_requires_grad();
        nn::BatchNorm bn(8);
        optim::Adam opt({w}, {.lr = 0.1, .weight_decay = 0.1});
        optim::SGD sgd({bn.parameters()[0], bn.parameters()[1]}, {.lr = 0.1, .momentum = 0.9});
        auto f = [&](const Tensor& x) {
            opt.zero_grad();
            sgd.zero_grad();
            Tensor l = sum(bn(reshape(matmul(x, w), {8, 8, 1, 1})) * 0.5 + 1.0) + sum(w * w);
            l.backward();
            auto n = optim::clip_grad_norm({w}, 0.1);
            opt.step();
            sgd.step();
            return n;
        };
        auto r = capture(f);
        for (int i = 0; i < 4; ++i) {
            std::vector<Tensor> pend;
            for (auto& [n, t] : opt.state_dict()) pend.push_back(t * 2.0);
            for (auto& [n, t] : sgd.state_dict()) pend.push_back(t * 2.0);
            for (auto& [n, t] : bn.state_dict())
                if (t.dtype() == DType::f32) pend.push_back(t * 2.0);
            pend.push_back(w * 3.0);
            if (i) pend.push_back(w.grad() * 3.0);
            out.push_back(vec(rec ? r(T(i)) : f(T(i))));
            for (auto& p : pend) out.push_back(vec(p));
            out.push_back(vec(w));
        }
        return out;
    };
    auto a = run(false), b = run(true);
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(i);
        CHECK(a[i] == b[i]);
    }
}

TEST_CASE("capture aliases: f16, bf16, f64 and integers match eager calls bit for bit") {
    for (DType d : {DType::f16, DType::bf16, DType::f64, DType::i32}) {
        CAPTURE(static_cast<int>(d));
        if (d == DType::f64 && !default_device().info().fp64) continue;
        Tensor w = (T(1) * 10.0).to(d);
        auto f = [&](const Tensor& x) { return (is_floating(d) ? tanh(matmul(x, w)) : x * w) + x; };
        auto r = capture(f);
        for (int i = 0; i < 3; ++i) {
            Tensor x = (T(i) * 9.0).to(d);
            Tensor fx = f(x);
            (void)fx.view();
            CHECK(vec(fx.to(DType::f32)) == vec(r(x).to(DType::f32)));
        }
    }
}

TEST_CASE("capture aliases: a gradient with a graph is refused") {
    Tensor x = T(1);
    x.set_requires_grad();
    auto step = capture([&] { x.set_grad(grad({sum(x * x * x)}, {x}, {.create_graph = true})[0]); });
    CHECK_THROWS_AS(step(), Unsupported);
    x.zero_grad();  // owned by x, and owning x
}

TEST_CASE("capture aliases: a gradient in the memory of an input is refused, or runs eagerly") {
    Tensor w = zeros({8, 8});
    w.set_requires_grad();
    const std::vector<std::function<Tensor(const Tensor&)>> same_memory{[](const Tensor& x) { return x; },
                                                                        [](const Tensor& x) { return x.detach(); },
                                                                        [](const Tensor& x) {
                                                                            return reshape(reshape(x, {64}), {8, 8});
                                                                        }};
    for (const auto& gradient : same_memory) {
        auto failing = capture([&](const Tensor& x) { return w.set_grad(gradient(x)), x * 2.0; });
        CHECK_THROWS_AS((void)failing(T(1)), Unsupported);
        auto running = capture([&](const Tensor& x) { return w.set_grad(gradient(x)), x * 2.0; },
                               {.when_refused = WhenRefused::run});
        for (int i = 0; i < 3; ++i) {
            const Tensor x = T(i);
            CHECK(vec(running(x)) == vec(x * 2.0));
            CHECK(vec(w.grad()) == vec(x));
        }
    }
    auto copied = capture([&](const Tensor& x) { return w.set_grad(x.clone()), x * 2.0; });
    for (int i = 0; i < 3; ++i) {
        const Tensor x = T(i);
        (void)copied(x);
        CHECK(vec(w.grad()) == vec(x));
    }
    CHECK(copied.replayed() == 2);
}

TEST_CASE("capture aliases: a refused step returns its input, whatever its strides") {
    auto step =
        capture([](const Tensor& x) { return (void)x.to_vector<float>(), x; }, {.when_refused = WhenRefused::run});
    const Tensor x = transpose(T(1), 0, 1);
    Tensor y = step(x);
    CHECK(!step.refused().empty());
    y.mul_(2);
    CHECK(vec(x) == vec(transpose(T(1), 0, 1) * 2.0));
}

TEST_CASE("capture aliases: a step may query its own capture") {
    CapturedStep* self = nullptr;
    auto step =
        capture([&](const std::vector<Tensor>& in) { return (void)self->replayed(), std::vector{in[0] + 1.0}; });
    self = &step;
    for (int i = 0; i < 3; ++i) CHECK(vec(step({T(i)})[0]) == vec(T(i) + 1.0));
}
