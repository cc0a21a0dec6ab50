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

std::vector<Contender> in_turn(const std::vector<std::vector<Contender>>& of_sets) {
    std::vector<Contender> peers;
    for (std::size_t peer = 0; !of_sets.empty() && peer < of_sets[0].size(); ++peer) {
        std::vector<Contender> sets;
        for (const auto& set : of_sets) sets.push_back(set[peer]);
        peers.push_back({sets[0].name, [sets](int call) { sets[static_cast<std::size_t>(call) % sets.size()].call(0); },
                         sets[0].wait});
    }
    return peers;
}

}  // namespace declivity::bench
