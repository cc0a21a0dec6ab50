// The convolutions of well-known networks, for `declivity tune` and the benchmark.
#pragma once

#include <cstdint>

namespace declivity::tools {

/// x (batch, in, size, size), weight (out, in / groups, filter, filter).
struct Layer {
    const char* net;
    std::int64_t in, size, out, filter, stride = 1, padding = 0, groups = 1, batch = 1;
};

// Each distinct convolution once: K. He et al. 2015 (strides in the 3x3), K. Simonyan and A. Zisserman 2014, M. Sandler
// et al. 2018.
inline constexpr Layer kLayers[] = {
    {"resnet50", 3, 224, 64, 7, 2, 3},
    {"resnet50", 64, 56, 64, 1},
    {"resnet50", 64, 56, 64, 3, 1, 1},
    {"resnet50", 64, 56, 256, 1},
    {"resnet50", 256, 56, 64, 1},
    {"resnet50", 256, 56, 128, 1},
    {"resnet50", 128, 56, 128, 3, 2, 1},
    {"resnet50", 128, 28, 512, 1},
    {"resnet50", 256, 56, 512, 1, 2},
    {"resnet50", 512, 28, 128, 1},
    {"resnet50", 128, 28, 128, 3, 1, 1},
    {"resnet50", 512, 28, 256, 1},
    {"resnet50", 256, 28, 256, 3, 2, 1},
    {"resnet50", 256, 14, 1024, 1},
    {"resnet50", 512, 28, 1024, 1, 2},
    {"resnet50", 1024, 14, 256, 1},
    {"resnet50", 256, 14, 256, 3, 1, 1},
    {"resnet50", 1024, 14, 512, 1},
    {"resnet50", 512, 14, 512, 3, 2, 1},
    {"resnet50", 512, 7, 2048, 1},
    {"resnet50", 1024, 14, 2048, 1, 2},
    {"resnet50", 2048, 7, 512, 1},
    {"resnet50", 512, 7, 512, 3, 1, 1},
    {"vgg16", 3, 224, 64, 3, 1, 1},
    {"vgg16", 64, 224, 64, 3, 1, 1},
    {"vgg16", 64, 112, 128, 3, 1, 1},
    {"vgg16", 128, 112, 128, 3, 1, 1},
    {"vgg16", 128, 56, 256, 3, 1, 1},
    {"vgg16", 256, 56, 256, 3, 1, 1},
    {"vgg16", 256, 28, 512, 3, 1, 1},
    {"vgg16", 512, 28, 512, 3, 1, 1},
    {"vgg16", 512, 14, 512, 3, 1, 1},
    {"mobilenet2", 3, 224, 32, 3, 2, 1},
    {"mobilenet2", 32, 112, 32, 3, 1, 1, 32},
    {"mobilenet2", 32, 112, 16, 1},
    {"mobilenet2", 16, 112, 96, 1},
    {"mobilenet2", 96, 112, 96, 3, 2, 1, 96},
    {"mobilenet2", 96, 56, 24, 1},
    {"mobilenet2", 24, 56, 144, 1},
    {"mobilenet2", 144, 56, 144, 3, 1, 1, 144},
    {"mobilenet2", 144, 56, 24, 1},
    {"mobilenet2", 144, 56, 144, 3, 2, 1, 144},
    {"mobilenet2", 144, 28, 32, 1},
    {"mobilenet2", 32, 28, 192, 1},
    {"mobilenet2", 192, 28, 192, 3, 1, 1, 192},
    {"mobilenet2", 192, 28, 32, 1},
    {"mobilenet2", 192, 28, 192, 3, 2, 1, 192},
    {"mobilenet2", 192, 14, 64, 1},
    {"mobilenet2", 64, 14, 384, 1},
    {"mobilenet2", 384, 14, 384, 3, 1, 1, 384},
    {"mobilenet2", 384, 14, 64, 1},
    {"mobilenet2", 384, 14, 96, 1},
    {"mobilenet2", 96, 14, 576, 1},
    {"mobilenet2", 576, 14, 576, 3, 1, 1, 576},
    {"mobilenet2", 576, 14, 96, 1},
    {"mobilenet2", 576, 14, 576, 3, 2, 1, 576},
    {"mobilenet2", 576, 7, 160, 1},
    {"mobilenet2", 160, 7, 960, 1},
    {"mobilenet2", 960, 7, 960, 3, 1, 1, 960},
    {"mobilenet2", 960, 7, 160, 1},
    {"mobilenet2", 960, 7, 320, 1},
    {"mobilenet2", 320, 7, 1280, 1},
};

/// The networks of the sample programs, at their training batch sizes.
inline constexpr Layer kSampleLayers[] = {
    {"mnist", 1, 28, 32, 3, 1, 0, 1, 128},    {"mnist", 32, 13, 64, 3, 1, 0, 1, 128},
    {"cifar10", 3, 32, 32, 3, 1, 1, 1, 64},   {"cifar10", 32, 16, 64, 3, 1, 1, 1, 64},
    {"lenet", 3, 32, 6, 5, 1, 0, 1, 64},      {"lenet", 6, 14, 16, 5, 1, 0, 1, 64},
    {"resnet20", 3, 32, 16, 3, 1, 1, 1, 64},  {"resnet20", 16, 32, 16, 3, 1, 1, 1, 64},
    {"resnet20", 16, 32, 32, 3, 2, 1, 1, 64}, {"resnet20", 32, 16, 32, 3, 1, 1, 1, 64},
    {"resnet20", 32, 16, 64, 3, 2, 1, 1, 64}, {"resnet20", 64, 8, 64, 3, 1, 1, 1, 64},
    {"resnet20", 16, 32, 32, 1, 2, 0, 1, 64}, {"resnet20", 32, 16, 64, 1, 2, 0, 1, 64},
};

}  // namespace declivity::tools
