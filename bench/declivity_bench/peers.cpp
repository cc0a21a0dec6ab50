#include "peers.hpp"

namespace declivity::bench {

std::vector<std::string> peer_names() {
    return {
        "CLBlast",
#ifdef DECLIVITY_BENCH_OPENBLAS
        "OpenBLAS",
#endif
#ifdef DECLIVITY_BENCH_ONEDNN
        "oneDNN-NCHW", "oneDNN-blocked",
#endif
#ifdef DECLIVITY_BENCH_FFTW
        "FFTW",
#endif
        "copy",
    };
}

std::vector<Contender> interleaved(const std::vector<std::vector<Contender>>& by_set) {
    std::vector<Contender> peers;
    for (std::size_t peer = 0; !by_set.empty() && peer < by_set[0].size(); ++peer) {
        std::vector<Contender> sets;
        for (const auto& set : by_set) sets.push_back(set[peer]);
        peers.push_back({sets[0].name, [sets](int call) { sets[static_cast<std::size_t>(call) % sets.size()].call(0); },
                         sets[0].wait});
    }
    return peers;
}

}  // namespace declivity::bench
