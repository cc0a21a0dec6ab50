// Objects of the library may be destroyed in any order, in static and thread storage, before and after main() ends.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/capture/capture.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/data/synthetic_digits.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/event.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/child.hpp>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;

namespace {

/// Objects that refer to each other, destroyed in the order of the list.
class Objects {
  public:
    Objects() = default;
    Objects(const Objects&) = delete;
    Objects& operator=(const Objects&) = delete;
    ~Objects() {
        for (auto& object : list_) object.reset();
    }

    template <class T, class... Arguments>
    T& make(Arguments&&... arguments) {
        auto object = std::make_shared<T>(std::forward<Arguments>(arguments)...);
        list_.push_back(object);
        return *object;
    }

    /// @param order of destruction: that of creation ("forward"), "backward", or the seed of a random one
    void fill(const std::string& order) {
        const Device device = test::device();
        auto& profiler = make<Profiler>(device);
        const Tensor& w = make<Tensor>(test::random_tensor({8, 8}, 1).set_requires_grad());
        const Tensor& x = make<Tensor>(test::random_tensor({8, 8}, 2));
        make<Tensor>(relu(x * 2.0 + 1.0));             // an expression that is never evaluated
        Tensor& product = make<Tensor>(matmul(x, w));  // a pending operator, with a graph
        make<Tensor>(exp(product) - product);          // and its results
        make<Tensor>(sum(square(matmul(product, x))));
        Tensor& used = make<Tensor>(sum(matmul(x, w)));
        used.backward();
        make<Tensor>(w.grad());

        auto& model = make<nn::Sequential>(nn::Conv2d(1, 3, 3), nn::BatchNorm(3), nn::ReLU(), nn::MaxPool2d(2),
                                           nn::Dropout(0.5), nn::Flatten(), nn::Linear(507, 10));
        auto& optimizer = make<optim::Adam>(model.parameters(), optim::AdamOptions{.lr = 0.01});
        digits_ = std::make_unique<data::SyntheticDigits>(64, 1);
        data::LoaderOptions options;
        options.batch = 16;
        options.threads = 2;
        auto& loader = make<data::Loader>(*digits_, options);  // with batches in flight at the end
        loader.start(0);
        auto& batch = make<data::Batch>(*loader.next());
        make<Tensor>(cross_entropy(model(batch["image"]), batch["label"]));  // a graph over everything
        Tensor loss = cross_entropy(model(batch["image"]), batch["label"]);
        loss.backward();
        optimizer.step();  // gradients remain

        auto& action = make<CapturedAction>(
            capture([model = &model, optimizer = &optimizer, x = batch["image"], y = batch["label"]] {
                optimizer->zero_grad();
                cross_entropy((*model)(x), y).backward();
                optimizer->step();
            }));
        for (int i = 0; i < 3; ++i) action();  // gradients are in its memory
        auto& doubled = make<CapturedFunction>(capture([](const Tensor& in) { return in * 2.0; }));
        make<Tensor>(doubled(x));
        make<CommandList>(action.command_list());

        Buffer& buffer = make<Buffer>(device, 1000);
        Buffer& ahead = make<Buffer>(device, 1000, BufferUse::transfer);
        make<Event>(upload_async(ahead, 0, std::vector<std::byte>(1000)));
        declivity::fill(buffer, 0, buffer.size(), std::vector<std::byte>(4));
        make<Event>(Queue::compute(device).marker());
        make<Kernel>(
            device,
            KernelSpec{.file = "arange.cl", .name = "arange", .defines = {{"OUT", "float"}, {"COMPUTE", "float"}}});
        (void)profiler.rows();

        if (order == "backward") std::reverse(list_.begin(), list_.end());
        else if (order != "forward") std::shuffle(list_.begin(), list_.end(), std::mt19937_64(std::stoull(order)));
    }

  private:
    std::unique_ptr<data::SyntheticDigits> digits_;  // borrowed by the loader
    std::vector<std::shared_ptr<void>> list_;
};

Objects before_main;
Tensor one_before_main;

/// Its destructor, after main(), reads pending results and computes more.
struct LateWorker {
    Tensor w, pending;
    ~LateWorker() {
        if (!w.defined()) return;
        if (test::difference(w, test::random_values(36, 1), {1e-6, 1e-6}) != "") _exit(3);
        Tensor k = test::random_tensor({1, 1, 3, 3}, 4).set_requires_grad();
        for (const std::function<void()>& call : std::vector<std::function<void()>>{
                 [&] { test::values(pending.value().computed() ? -pending : pending); },
                 [&] { sum(conv2d(w, k)).backward(); }, [&] { test::values(exp(w) * 3.0); },
                 [&] { test::values(matmul(k, k)); }})
            try {
                call();
                _exit(4);
            } catch (const DeviceError& error) {
                if (std::string(error.what()).find("before main() ends") == std::string::npos) _exit(5);
            }
    }
} late_worker;

void fill_static(const std::string& order) {
    static Objects in_function;
    in_function.fill(order);
}

void fill_thread(const std::string& order) {
    static thread_local Objects thread_objects;
    thread_objects.fill(order);
}

/// The output of a child after doctest's last line: destructors must print nothing.
std::string last_words(const std::string& output) {
    const std::string last = "[doctest] Status: SUCCESS!\n";
    const std::size_t at = output.rfind(last);
    return at == std::string::npos ? output : output.substr(at + last.size());
}

}  // namespace

TEST_CASE("lifetimes: child process" * doctest::skip()) {
    alarm(300);  // a hang is a failure
    const std::string storage = test::environment_variable("DECLIVITY_TEST_PLACE"),
                      order = test::environment_variable("DECLIVITY_TEST_ORDER");
    if (storage == "static") fill_static(order);
    if (storage == "before main") {
        before_main.fill(order);
        one_before_main = uniform({5}) + 1.0;
    }
    if (storage == "thread") fill_thread(order);
    if (storage == "ended thread") std::thread([&] { fill_thread(order); }).join();
    if (storage == "two threads") {
        std::thread([&] { fill_thread(order); }).join();
        fill_thread(order);
    }
    if (storage == "late worker") {
        const NoGrad no_grad;
        late_worker.w = test::random_tensor({1, 1, 6, 6}, 1);
        const Tensor k = test::tensor({1}, {1, 1, 1, 1});
        late_worker.pending = conv2d(late_worker.w, k) * 2.0;
    }
    if (storage == "stack") {
        Objects objects;
        objects.fill(order);
    }
    CHECK(storage != "");
}

TEST_CASE("lifetimes: objects in any storage and order are destroyed silently") {
    for (const char* storage :
         {"stack", "static", "before main", "thread", "ended thread", "two threads", "late worker"})
        for (const char* order : {"forward", "backward", "1", "2"}) {
            if (std::string(storage) == "late worker" && std::string(order) != "forward") continue;
            CAPTURE(std::string(storage));
            CAPTURE(std::string(order));
            // LLVM, in PoCL, gives a compiler thread a signal stack, which AddressSanitizer would mistake for its own
            // when the thread ends.
            const auto result =
                test::run_child("lifetimes: child process",
                                {{"DECLIVITY_TEST_PLACE", storage},
                                 {"DECLIVITY_TEST_ORDER", order},
                                 {"ASAN_OPTIONS", test::environment_variable("ASAN_OPTIONS") + ":use_sigaltstack=0"}});
            INFO(result.output);
            CHECK(result.code == 0);
            CHECK(last_words(result.output) == "");
        }
}

TEST_CASE("lifetimes: tensors outlive the thread that made them, and are evaluated by others") {
    Tensor pending, operator_waits, loss, w = test::random_tensor({4, 4}, 1).set_requires_grad();
    const Tensor x = test::random_tensor({4, 4}, 2);
    std::thread([&] {
        pending = relu(x) + 1.0;
        operator_waits = matmul(x, x);
        loss = sum(square(matmul(x, w)));
    }).join();
    CHECK(test::difference(pending, test::values(relu(x) + 1.0), {1e-6, 1e-6}) == "");
    CHECK(test::difference(operator_waits, test::values(matmul(x, x)), {1e-6, 1e-6}) == "");
    std::thread([&] { loss.backward(); }).join();
    CHECK(test::difference(w.grad(), test::values(matmul(transpose(x), matmul(x, w)) * 2.0), {1e-5, 1e-5}) == "");
}
