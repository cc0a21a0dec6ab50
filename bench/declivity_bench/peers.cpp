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
        "copy",
    };
}

}  // namespace declivity::bench
