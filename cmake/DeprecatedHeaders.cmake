# Paths of public headers that have moved. Each of them is written into the build folder as a header that includes the new one, and
# installed with the others, until the next minor version.
set(declivity_deprecated_headers
    data/drawn_digits:data/synthetic_digits
    ops/random_draws:ops/random_distributions
    ops/value:ops/lazy_array
    ops/weighted_rows:ops/gather_weighted_sum
    runtime/recording:runtime/command_list
    tensor/autograd:autograd/autograd
    tensor/capture:capture/capture
    tensor/checkpoint:autograd/checkpoint
    tensor/functions:functions/functions
    tensor/random:functions/random
    tensor/record:capture/capture
    train/figures:train/epoch_metrics)
foreach(name activation arrangement attention audio complex conv conv_nd dropout elementwise embedding fft indexing linalg loss math matmul norm
             padding pool pool_nd products recurrent reduce resize scan shape signal softmax sort statistics vision)
    list(APPEND declivity_deprecated_headers tensor/functions/${name}:functions/${name})
endforeach()

set(declivity_deprecated_include ${PROJECT_BINARY_DIR}/generated/deprecated)
foreach(pair IN LISTS declivity_deprecated_headers)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 old)
    list(GET pair 1 new)
    file(CONFIGURE OUTPUT ${declivity_deprecated_include}/declivity/${old}.hpp
         CONTENT "// Deprecated path of <declivity/${new}.hpp>, for version 0.1.\n#pragma once\n\n#include <declivity/${new}.hpp>  // IWYU pragma: export\n" @ONLY)
endforeach()
