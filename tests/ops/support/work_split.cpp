// no-oclgrind: runs nothing on a device
//
// Cost model of work-groups on several compute units, by which strategies choose their split.
#include <cstdint>

#include <doctest/doctest.h>

#include "ops/support/work_split.hpp"

using declivity::ops::GroupGrid;

namespace {

/// The sum over all groups, one by one.
double total_cycles(const GroupGrid& grid) {
    double sum = 0;
    for (std::int64_t y = 0; y < grid.down; ++y)
        for (std::int64_t x = 0; x < grid.across; ++x) {
            const bool last_x = x == grid.across - 1, last_y = y == grid.down - 1;
            sum += last_x && last_y ? grid.corner : last_x ? grid.last_column : last_y ? grid.last_row : grid.inner;
        }
    return sum;
}

}  // namespace

TEST_CASE("work split: one unit takes the sum of all groups, and more units never take longer") {
    for (std::int64_t across = 1; across <= 5; ++across)
        for (std::int64_t down = 1; down <= 5; ++down) {
            CAPTURE(across);
            CAPTURE(down);
            const GroupGrid grid{across, down, 5e6, 3e6, 2e6, 1e6};
            CHECK(grid.cycles(1) == doctest::Approx(total_cycles(grid)));
            double before = grid.cycles(1);
            for (const std::int64_t units : {2, 4, 16}) {
                const double now = grid.cycles(units);
                CHECK(now <= before);
                CHECK(now >= total_cycles(grid) / static_cast<double>(units));
                before = now;
            }
        }
}

TEST_CASE("work split: shorter groups at the end are considered") {
    // Two units: 4 + 4 and 4 + 1, in adjacent groups; and 7 rows of which the first unit takes the larger half.
    CHECK(GroupGrid{4, 1, 4e6, 1e6, 4e6, 1e6}.cycles(2) == doctest::Approx(8e6));
    CHECK(GroupGrid{2, 1, 8e6, 5e6, 8e6, 5e6}.cycles(2) == doctest::Approx(8e6));
    CHECK(GroupGrid{1, 2, 6.5e6, 6.5e6, 6.5e6, 6.5e6}.cycles(2) ==
          doctest::Approx(6.56e6));  // woken threads start a little later
    CHECK(GroupGrid{1, 7, 1e6, 1e6, 1e6, 1e6}.cycles(2) == doctest::Approx(4e6));
    // Far more units than the model distinguishes.
    CHECK(GroupGrid{1, 100, 1e6, 1e6, 1e6, 1e6}.cycles(50) == doctest::Approx(2e6).epsilon(0.05));
    CHECK(GroupGrid{1, 1, 1e6, 1e6, 1e6, 1e6}.cycles(2) == doctest::Approx(1e6));
}
