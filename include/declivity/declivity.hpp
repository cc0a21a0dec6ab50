// All of Declivity.
#pragma once

#include <declivity/data/cifar10.hpp>
#include <declivity/data/dataset.hpp>
#include <declivity/data/drawn_digits.hpp>
#include <declivity/data/idx.hpp>
#include <declivity/data/loader.hpp>
#include <declivity/data/transforms.hpp>
#include <declivity/io/png.hpp>
#include <declivity/io/state_dict.hpp>
#include <declivity/nn/nn.hpp>
#include <declivity/optim/adam.hpp>
#include <declivity/optim/schedule.hpp>
#include <declivity/optim/sgd.hpp>
#include <declivity/runtime/device.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/runtime/launch.hpp>
#include <declivity/runtime/profiler.hpp>
#include <declivity/runtime/scope.hpp>
#include <declivity/tensor/autograd.hpp>
#include <declivity/tensor/creation.hpp>
#include <declivity/tensor/functions.hpp>
#include <declivity/tensor/tensor.hpp>
#include <declivity/train/callbacks.hpp>
#include <declivity/train/plot.hpp>
#include <declivity/train/trainer.hpp>
#include <declivity/version.hpp>
