#include "digit_styles.hpp"

namespace declivity::data {
namespace {

constexpr bool kCorner = true;

std::vector<DigitStyle> zero() {
    return {
        // Round, from the top to the left, not quite closed or slightly overlapping.
        {{{.55F, .08F},
          {.28F, .20F},
          {.17F, .50F},
          {.28F, .82F},
          {.52F, .93F},
          {.76F, .78F},
          {.83F, .48F},
          {.72F, .18F},
          {.52F, .09F}}},
        // Narrow, with the end inside.
        {{{.60F, .10F},
          {.38F, .16F},
          {.27F, .48F},
          {.32F, .82F},
          {.50F, .92F},
          {.68F, .75F},
          {.74F, .42F},
          {.62F, .14F},
          {.46F, .20F}}},
        // With a loop at the top.
        {{{.36F, .16F},
          {.60F, .20F},
          {.72F, .10F},
          {.50F, .08F},
          {.24F, .28F},
          {.20F, .64F},
          {.42F, .92F},
          {.72F, .80F},
          {.80F, .44F},
          {.62F, .16F}}},
        // Clockwise, from the lower left.
        {{{.26F, .76F},
          {.18F, .46F},
          {.32F, .16F},
          {.56F, .10F},
          {.78F, .34F},
          {.76F, .72F},
          {.52F, .92F},
          {.30F, .82F},
          {.22F, .66F}}},
    };
}

std::vector<DigitStyle> one() {
    return {
        {{{.50F, .08F}, {.50F, .50F}, {.50F, .93F}}},
        // With an upstroke.
        {{{.33F, .30F}, {.53F, .08F, kCorner}, {.52F, .50F}, {.51F, .93F}}},
        // With upstroke and foot.
        {{{.32F, .26F}, {.52F, .08F, kCorner}, {.52F, .50F}, {.52F, .90F}}, {{.28F, .91F}, {.52F, .90F}, {.76F, .90F}}},
        // A bent line.
        {{{.56F, .07F}, {.51F, .34F}, {.47F, .66F}, {.46F, .93F}}},
        // A hook at the top, a long way up.
        {{{.24F, .42F}, {.40F, .26F}, {.56F, .07F, kCorner}, {.55F, .44F}, {.53F, .93F}}},
    };
}

std::vector<DigitStyle> two() {
    return {
        {{{.22F, .28F},
          {.38F, .11F},
          {.64F, .11F},
          {.74F, .32F},
          {.58F, .58F},
          {.24F, .90F, kCorner},
          {.50F, .89F},
          {.80F, .89F}}},
        // With a loop at the lower left.
        {{{.24F, .24F},
          {.44F, .09F},
          {.70F, .19F},
          {.68F, .42F},
          {.44F, .72F},
          {.24F, .86F},
          {.18F, .76F},
          {.34F, .72F},
          {.56F, .86F},
          {.82F, .85F}}},
        // A swan: long neck, wavy foot.
        {{{.28F, .30F},
          {.32F, .14F},
          {.54F, .08F},
          {.70F, .22F},
          {.62F, .46F},
          {.40F, .70F},
          {.22F, .88F, kCorner},
          {.42F, .82F},
          {.60F, .90F},
          {.80F, .84F}}},
        // Straight shoulders.
        {{{.20F, .14F}, {.48F, .10F}, {.70F, .16F}, {.70F, .36F}, {.46F, .62F}, {.20F, .90F, kCorner}, {.78F, .90F}}},
    };
}

std::vector<DigitStyle> three() {
    return {
        {{{.24F, .20F},
          {.44F, .08F},
          {.68F, .18F},
          {.66F, .38F},
          {.42F, .47F, kCorner},
          {.68F, .55F},
          {.76F, .74F},
          {.54F, .92F},
          {.22F, .84F}}},
        // Flat top.
        {{{.22F, .12F},
          {.48F, .11F},
          {.72F, .11F, kCorner},
          {.46F, .42F, kCorner},
          {.70F, .50F},
          {.77F, .72F},
          {.54F, .92F},
          {.22F, .84F}}},
        // A small loop in the middle.
        {{{.28F, .16F},
          {.50F, .08F},
          {.68F, .22F},
          {.58F, .40F},
          {.40F, .48F},
          {.36F, .42F},
          {.48F, .42F},
          {.70F, .54F},
          {.74F, .76F},
          {.50F, .92F},
          {.24F, .80F}}},
        // Open and flowing.
        {{{.26F, .14F},
          {.54F, .08F},
          {.66F, .24F},
          {.52F, .43F},
          {.48F, .46F},
          {.66F, .54F},
          {.72F, .74F},
          {.50F, .90F},
          {.20F, .90F}}},
    };
}

std::vector<DigitStyle> four() {
    return {
        // Open, two strokes.
        {{{.32F, .10F}, {.28F, .32F}, {.20F, .56F, kCorner}, {.50F, .55F}, {.82F, .53F}},
         {{.66F, .10F}, {.64F, .50F}, {.62F, .93F}}},
        // Closed, one stroke and the stem.
        {{{.62F, .08F}, {.40F, .34F}, {.16F, .62F, kCorner}, {.50F, .62F}, {.86F, .60F}},
         {{.62F, .08F}, {.62F, .50F}, {.61F, .93F}}},
        // A cup, ended by a stem.
        {{{.24F, .12F}, {.22F, .34F}, {.32F, .50F}, {.54F, .48F}, {.72F, .34F}},
         {{.74F, .08F}, {.70F, .46F}, {.64F, .93F}}},
        // One stroke, like a 9 with a corner.
        {{{.60F, .40F}, {.64F, .10F, kCorner}, {.22F, .54F, kCorner}, {.58F, .55F}, {.84F, .52F}},
         {{.64F, .10F}, {.62F, .93F}}},
        // Steep and narrow, with a low bar.
        {{{.38F, .08F}, {.30F, .40F}, {.26F, .64F, kCorner}, {.74F, .62F}}, {{.62F, .34F}, {.58F, .62F}, {.54F, .93F}}},
    };
}

std::vector<DigitStyle> five() {
    return {
        // One stroke from the right end of the bar.
        {{{.74F, .10F},
          {.34F, .11F, kCorner},
          {.29F, .46F, kCorner},
          {.52F, .40F},
          {.75F, .56F},
          {.70F, .82F},
          {.48F, .92F},
          {.22F, .83F}}},
        // Stem and bowl, then the bar.
        {{{.34F, .12F}, {.29F, .44F, kCorner}, {.54F, .40F}, {.74F, .58F}, {.68F, .84F}, {.44F, .92F}, {.22F, .82F}},
         {{.34F, .12F}, {.54F, .12F}, {.76F, .09F}}},
        // Nearly an S.
        {{{.72F, .11F},
          {.44F, .11F},
          {.32F, .28F},
          {.42F, .42F},
          {.64F, .50F},
          {.73F, .70F},
          {.54F, .91F},
          {.24F, .86F}}},
        // Angular, with a small bowl.
        {{{.70F, .10F},
          {.36F, .10F, kCorner},
          {.34F, .50F, kCorner},
          {.56F, .46F},
          {.70F, .64F},
          {.60F, .86F},
          {.28F, .92F}}},
    };
}

std::vector<DigitStyle> six() {
    return {
        {{{.66F, .09F},
          {.42F, .26F},
          {.26F, .56F},
          {.30F, .83F},
          {.52F, .92F},
          {.72F, .78F},
          {.68F, .58F},
          {.48F, .53F},
          {.30F, .68F}}},
        // A straight stem and a small bowl.
        {{{.50F, .08F},
          {.36F, .38F},
          {.28F, .66F},
          {.34F, .88F},
          {.56F, .91F},
          {.66F, .74F},
          {.54F, .60F},
          {.36F, .66F},
          {.30F, .78F}}},
        // A wide sweep.
        {{{.76F, .16F},
          {.52F, .10F},
          {.28F, .34F},
          {.20F, .66F},
          {.38F, .91F},
          {.66F, .88F},
          {.76F, .70F},
          {.60F, .55F},
          {.36F, .62F},
          {.24F, .76F}}},
        // With a loop that closes high.
        {{{.62F, .08F},
          {.40F, .22F},
          {.28F, .52F},
          {.30F, .80F},
          {.48F, .92F},
          {.66F, .80F},
          {.66F, .56F},
          {.46F, .46F},
          {.28F, .58F}}},
    };
}

std::vector<DigitStyle> seven() {
    return {
        {{{.20F, .13F}, {.48F, .12F}, {.78F, .11F, kCorner}, {.58F, .48F}, {.44F, .93F}}},
        // With a bar through the stem.
        {{{.22F, .13F}, {.76F, .12F, kCorner}, {.58F, .46F}, {.44F, .93F}}, {{.34F, .52F}, {.54F, .50F}, {.74F, .49F}}},
        // With a serif.
        {{{.20F, .28F}, {.22F, .13F, kCorner}, {.50F, .14F}, {.78F, .11F, kCorner}, {.62F, .44F}, {.52F, .93F}}},
        // A wavy roof and a bent stem.
        {{{.20F, .20F}, {.36F, .10F}, {.56F, .16F}, {.78F, .12F, kCorner}, {.66F, .32F}, {.52F, .60F}, {.48F, .93F}}},
        // A round shoulder.
        {{{.22F, .16F}, {.50F, .10F}, {.74F, .15F}, {.72F, .34F}, {.58F, .62F}, {.50F, .93F}}},
    };
}

std::vector<DigitStyle> eight() {
    return {
        // An S, and back.
        {{{.70F, .20F},
          {.52F, .08F},
          {.30F, .20F},
          {.40F, .42F},
          {.62F, .56F},
          {.74F, .76F},
          {.52F, .93F},
          {.26F, .78F},
          {.40F, .54F},
          {.64F, .38F},
          {.70F, .18F}}},
        // Two rings.
        {{{.52F, .09F}, {.32F, .20F}, {.34F, .40F}, {.54F, .46F}, {.70F, .34F}, {.66F, .16F}, {.50F, .09F}},
         {{.52F, .46F}, {.28F, .60F}, {.28F, .82F}, {.52F, .93F}, {.74F, .80F}, {.72F, .58F}, {.50F, .46F}}},
        // From the middle: up, around, down, around.
        {{{.50F, .48F},
          {.32F, .34F},
          {.36F, .14F},
          {.58F, .09F},
          {.70F, .26F},
          {.52F, .46F},
          {.28F, .68F},
          {.34F, .90F},
          {.62F, .90F},
          {.70F, .68F},
          {.48F, .47F}}},
        // Open at the top.
        {{{.74F, .12F},
          {.46F, .10F},
          {.30F, .26F},
          {.50F, .46F},
          {.72F, .68F},
          {.58F, .91F},
          {.32F, .86F},
          {.32F, .66F},
          {.54F, .44F},
          {.72F, .24F}}},
    };
}

std::vector<DigitStyle> nine() {
    return {
        // A bowl and a straight stem.
        {{{.70F, .24F},
          {.52F, .09F},
          {.30F, .22F},
          {.32F, .44F},
          {.52F, .50F},
          {.70F, .32F},
          {.73F, .18F, kCorner},
          {.70F, .54F},
          {.66F, .93F}}},
        // A curved tail.
        {{{.70F, .26F},
          {.54F, .08F},
          {.30F, .20F},
          {.30F, .44F},
          {.54F, .50F},
          {.71F, .30F},
          {.74F, .50F},
          {.66F, .80F},
          {.46F, .93F},
          {.26F, .84F}}},
        // One flowing line, the stem leaning.
        {{{.66F, .16F},
          {.44F, .10F},
          {.28F, .30F},
          {.40F, .48F},
          {.62F, .40F},
          {.72F, .16F},
          {.66F, .50F},
          {.52F, .93F}}},
        // A small bowl, high up.
        {{{.66F, .22F},
          {.50F, .08F},
          {.34F, .18F},
          {.36F, .36F},
          {.54F, .40F},
          {.68F, .24F, kCorner},
          {.66F, .60F},
          {.62F, .93F}}},
    };
}

}  // namespace

const std::array<std::vector<DigitStyle>, 10>& digit_styles() {
    static const auto& styles = *new std::array<std::vector<DigitStyle>, 10>{zero(), one(), two(),   three(), four(),
                                                                             five(), six(), seven(), eight(), nine()};
    return styles;
}

}  // namespace declivity::data
