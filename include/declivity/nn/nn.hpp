// Floor 4. All layers.
#pragma once

#include <declivity/nn/batch_norm.hpp>
#include <declivity/nn/callable.hpp>
#include <declivity/nn/conv1d.hpp>
#include <declivity/nn/conv2d.hpp>
#include <declivity/nn/conv_transpose2d.hpp>
#include <declivity/nn/dropout.hpp>
#include <declivity/nn/embedding.hpp>
#include <declivity/nn/functional.hpp>
#include <declivity/nn/init.hpp>
#include <declivity/nn/layer_norm.hpp>
#include <declivity/nn/linear.hpp>
#include <declivity/nn/loss.hpp>
#include <declivity/nn/lstm_cell.hpp>
#include <declivity/nn/module.hpp>
#include <declivity/nn/module_list.hpp>
#include <declivity/nn/parameter.hpp>
#include <declivity/nn/parametrize.hpp>
#include <declivity/nn/pool2d.hpp>
#include <declivity/nn/replicate.hpp>
#include <declivity/nn/sequential.hpp>
