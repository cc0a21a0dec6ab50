// Layer 7. CIFAR-10, binary version: https://www.cs.toronto.edu/~kriz/cifar.html.
#pragma once

#include <filesystem>
#include <memory>

#include <declivity/data/dataset.hpp>
#include <declivity/export.hpp>

namespace declivity::data {

/// @addtogroup data
/// @{

/// CIFAR-10: colour images of shape 3,32,32 in ten classes. The folder contains data_batch_1.bin, data_batch_2.bin, ...
/// (consecutively numbered, any count; five in the original) or, for Split::test, test_batch.bin; class names are read
/// from batches.meta.txt if it exists. A record has 3,073 bytes: the label, then the red, green and blue planes in
/// row-major order. Source of the data: Krizhevsky, "Learning Multiple Layers of Features from Tiny Images" (2009).
/// @throws IoError when a file is missing; FormatError when a file's size is not a positive multiple of 3,073, for a
/// label above 9, and unless batches.meta.txt has ten class names
DECLIVITY_API std::shared_ptr<const InMemoryDataset> load_cifar10(const std::filesystem::path& folder, Split split);

/// @}

}  // namespace declivity::data
