#include "peers.hpp"

#ifdef DECLIVITY_BENCH_FFTW
#include <algorithm>
#include <memory>
#include <thread>

#include <fftw3.h>
#endif

namespace declivity::bench {

#ifdef DECLIVITY_BENCH_FFTW

namespace {

struct Plan {
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;
    explicit Plan(const HostFft& fft) {
        static const bool threads = fftwf_init_threads() != 0;
        if (threads) fftwf_plan_with_nthreads(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
        std::vector<int> n;
        std::int64_t in_row = fft.real ? 1 : 2, out_row = 2;
        for (std::size_t i = 0; i < fft.sizes.size(); ++i) {
            n.push_back(static_cast<int>(fft.sizes[i]));
            in_row *= fft.sizes[i];
            out_row *= fft.real && i + 1 == fft.sizes.size() ? fft.sizes[i] / 2 + 1 : fft.sizes[i];
        }
        const auto batch = static_cast<std::size_t>(fft.batch);
        in = fftwf_alloc_real(batch * static_cast<std::size_t>(in_row));
        out = fftwf_alloc_real(batch * static_cast<std::size_t>(out_row));
        auto* const spectrum = reinterpret_cast<fftwf_complex*>(out);
        const int rank = static_cast<int>(n.size()), rows = static_cast<int>(fft.batch);
        const int from = static_cast<int>(fft.real ? in_row : in_row / 2), to = static_cast<int>(out_row / 2);
        plan = fft.real ? fftwf_plan_many_dft_r2c(rank, n.data(), rows, in, nullptr, 1, from, spectrum, nullptr, 1, to,
                                                  FFTW_MEASURE)
                        : fftwf_plan_many_dft(rank, n.data(), rows, reinterpret_cast<fftwf_complex*>(in), nullptr, 1,
                                              from, spectrum, nullptr, 1, to, FFTW_FORWARD, FFTW_MEASURE);
        std::copy_n(fft.x, batch * static_cast<std::size_t>(in_row), in);  // after planning, which overwrites the input
    }
    ~Plan() {
        if (plan != nullptr) fftwf_destroy_plan(plan);
        fftwf_free(in);
        fftwf_free(out);
    }
    float *in = nullptr, *out = nullptr;
    fftwf_plan plan = nullptr;
};

}  // namespace

std::optional<Contender> fftw(const HostFft& fft) {
    const auto plan = std::make_shared<Plan>(fft);
    if (plan->plan == nullptr) return std::nullopt;
    return Contender{"FFTW", [plan](int) { fftwf_execute(plan->plan); }};
}

#else

std::optional<Contender> fftw(const HostFft&) { return std::nullopt; }

#endif

}  // namespace declivity::bench
