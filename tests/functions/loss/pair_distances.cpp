// Distances between all pairs of rows: equal rows, p of 0, empty inputs, errors. Regular values and gradients are
// tested by the catalogue.
#include <cmath>
#include <limits>
#include <vector>

#include <declivity/autograd/autograd.hpp>
#include <declivity/functions/functions.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/tensor/creation.hpp>
#include <doctest/doctest.h>
#include <tests/support/devices.hpp>
#include <tests/support/values.hpp>

using namespace declivity;
using namespace declivity::test;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("cdist, pdist: distances between rows of two tensors, and of one") {
    const Tensor a = tensor({0, 0, 3, 4}, {2, 2}), b = tensor({0, 0}, {1, 2});
    CHECK(difference(cdist(a, b), {0, 5}, {1e-5}) == "");
    CHECK(values(cdist(a, b, 1)) == Values{0, 7});
    // Rows 0 and 1, 0 and 2, 1 and 2.
    CHECK(difference(pdist(tensor({0, 0, 3, 4, 3, 0}, {3, 2})), {5, 3, 4}, {1e-5}) == "");
}

TEST_CASE("cdist, pdist: equal rows, p of 0, empty inputs, errors") {
    const Tensor x = tensor({1, 2, 1, 2, 4, -2}, {3, 2}).set_requires_grad();
    CHECK(values(cdist(x, x, 0)) == Values{0, 0, 2, 0, 0, 2, 2, 2, 0});
    CHECK(values(pdist(x)) == Values{0, 5, 5});
    CHECK(values(pdist(x, 1)) == Values{0, 7, 7});
    for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
        const Tensor gradient = grad({sum(cdist(x, x.detach(), p))}, {x})[0];
        for (const double value : values(gradient)) CHECK(std::isfinite(value));
        CHECK(values(slice(gradient, 0, 0, 1)) == values(slice(gradient, 0, 1, 2)));
    }
    CHECK(cdist(zeros({0, 3}), zeros({4, 3})).shape() == Shape{0, 4});
    CHECK(values(cdist(zeros({2, 0}), zeros({1, 0}))) == Values{0, 0});
    CHECK(cdist(zeros({2, 1, 3, 2}), zeros({4, 5, 2})).shape() == Shape{2, 4, 3, 5});
    CHECK(pdist(zeros({1, 3})).shape() == Shape{0});
    CHECK(pdist(zeros({0, 3})).shape() == Shape{0});
    CHECK(values(pdist(zeros({3, 0}))) == Values{0, 0, 0});
    CHECK_THROWS_WITH_AS(cdist(x, zeros({3, 3})),
                         "cdist: expected x1 of shape (..., P, M) and x2 of shape (..., R, M), got [3, 2] and [3, 3]",
                         ShapeError);
    CHECK_THROWS_AS(cdist(zeros({2, 3, 2}), zeros({3, 3, 2})), ShapeError);
    CHECK_THROWS_WITH_AS(cdist(x, x, -1), "cdist: expected p of at least 0, got -1", ValueError);
    CHECK_THROWS_AS(pdist(zeros({3})), ShapeError);
    CHECK_THROWS_AS(cdist(x.to(DType::i32), x), TypeError);
}
