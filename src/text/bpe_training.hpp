// Layer 7, private. Training of byte-pair models: repeatedly merges the most frequent pair.
#pragma once

#include "bpe.hpp"

namespace declivity::text {

struct TrainedMerges {
    TokenTable table;
    std::vector<Bpe::Merge> merges;
    std::vector<Id> merged;
};
/// Ties are resolved by the lower ids. @throws ValueError for options out of range
TrainedMerges train_merges(const Model::Counts& words, const TrainOptions& options, const std::string& prefix,
                           const std::string& suffix);

/// Checks the options that all models have in common. @throws ValueError
void check_train_options(const TrainOptions& options);

}  // namespace declivity::text
