// Layer 5, private. Training of byte-pair models: the most frequent pair becomes a token, again and again.
#pragma once

#include "bpe.hpp"

namespace declivity::text {

struct TrainedMerges {
    TokenTable table;
    std::vector<Bpe::Merge> merges;
    std::vector<Id> merged;
};
/// Of pairs that are as frequent, the one of the lower ids is taken. @throws ValueError for options out of range
TrainedMerges train_merges(const Model::Counts& words, const TrainOptions& options, const std::string& prefix,
                           const std::string& suffix);

/// The options that all models have in common. @throws ValueError
void check_train_options(const TrainOptions& options);

}  // namespace declivity::text
