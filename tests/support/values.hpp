// Names of reference/ in the namespace of the tests.
#pragma once

#include <reference/values.hpp>

namespace declivity::test {
using namespace declivity::reference;
}
