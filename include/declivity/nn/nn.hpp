// Floor 4. All layers.
#pragma once

#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/functional.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/nn/module.hpp>
#include <declivity/nn/pool2d.hpp>
#include <declivity/nn/sequential.hpp>
