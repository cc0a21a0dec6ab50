#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include <declivity/io/canvas.hpp>
#include <declivity/runtime/error.hpp>
#include <declivity/train/plot.hpp>
#include <fmt/format.h>

namespace declivity::train {
namespace {

using io::Canvas;
using io::Color;

constexpr Color kPaper{255, 255, 255}, kInk{38, 40, 48}, kFaint{110, 114, 126}, kGrid{228, 230, 236},
    kFrame{170, 174, 186};
constexpr Color kCorrectColor{22, 128, 60}, kWrongColor{200, 36, 36};
// Colours distinguishable with the common kinds of colour blindness (Okabe and Ito, 2008).
constexpr std::array<Color, 6> kLineColors{
    {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}, {86, 180, 233}}};

constexpr int kPanelWidth = 520, kPanelHeight = 400;
constexpr int kLeft = 76, kRightMargin = 24, kTop = 44, kBottom = 62;  // around the plot area of a panel
constexpr int kPlotWidth = kPanelWidth - kLeft - kRightMargin, kPlotHeight = kPanelHeight - kTop - kBottom;
constexpr int kLegendLine = 24, kSwatch = 26;  // height of a row of the legend; width of an entry's stroke
constexpr int kTitleHeight = 40;

// A range of values with round tick values.
struct Axis {
    double low = 0, high = 1, step = 0.2;

    [[nodiscard]] double fraction(double value) const { return (value - low) / (high - low); }
    // The round numbers within the range.
    [[nodiscard]] std::vector<double> ticks() const {
        std::vector<double> values;
        constexpr double kSlack = 1e-9;
        for (double k = std::ceil(low / step - kSlack); k <= high / step + kSlack; ++k) values.push_back(k * step);
        return values;
    }
    [[nodiscard]] std::string label(double value) const {
        const double largest = std::max(std::abs(low), std::abs(high));
        if (std::abs(value) < 1e-9 * step) value = 0;  // not "-0.0"
        if (largest >= 1e7 || step < 1e-5) return fmt::format("{:.3g}", value);
        const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
        return fmt::format("{:.{}f}", value, decimals);
    }
};

// Steps of 1, 2 or 5 times a power of ten: Heckbert, "Nice numbers for graph labels" (Graphics Gems, 1990).
double nice_step(double span, int tick_count) {
    const double rough = span / tick_count, power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (factor * power >= rough * 0.9999) return factor * power;
    return 10 * power;
}

Axis axis_of(double low, double high, int ticks, bool round_out) {
    if (!(low <= high)) return {};
    if (high - low < 1e-9 * std::max(1.0, std::abs(high))) {
        const double margin = std::max(0.5 * std::abs(high), 1e-6);
        low -= low == 0 ? 0 : margin;
        high += margin;
    }
    Axis axis{low, high, nice_step(high - low, ticks)};
    if (round_out) {
        axis.low = std::floor(low / axis.step + 1e-9) * axis.step;
        axis.high = std::ceil(high / axis.step - 1e-9) * axis.step;
    }
    return axis;
}

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    void add(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
};

bool finite_point(const Series& series, std::size_t i) {
    return std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
}

std::optional<double> last_value(const Series& series) {
    for (std::size_t i = series.y.size(); i-- > 0;)
        if (finite_point(series, i)) return series.y[i];
    return std::nullopt;
}

// Legend with the names of the series and their last values, in rows below the plot area, so that it hides no curve.
class Legend {
  public:
    struct Entry {
        std::string text;
        Color color;
        int x, row;
    };

    explicit Legend(const std::vector<Series>& series_list) {
        constexpr int kGap = 24;
        int x = 0, row = 0;
        for (std::size_t i = 0; i < series_list.size(); ++i) {
            const std::optional<double> last = last_value(series_list[i]);
            const std::string value = last ? fmt::format("  {:.4f}", *last) : "";
            const std::string text = shortened(series_list[i].name, value) + value;
            const int width = kSwatch + Canvas::text_width(text, 2);
            if (x > 0 && x + width > kPlotWidth) x = 0, ++row;
            entries_.push_back({text, kLineColors[i % kLineColors.size()], x, row});
            x += width + kGap;
        }
    }
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
    [[nodiscard]] int height() const { return entries_.empty() ? 0 : (entries_.back().row + 1) * kLegendLine; }

  private:
    // Prefix of a name that fits into a row before the value.
    static std::string shortened(std::string name, const std::string& value) {
        const std::string dots = "...";
        if (kSwatch + Canvas::text_width(name + value, 2) <= kPlotWidth) return name;
        while (!name.empty() && kSwatch + Canvas::text_width(name + dots + value, 2) > kPlotWidth) name.pop_back();
        return name + dots;
    }

    std::vector<Entry> entries_;
};

// One coordinate system within the image.
class Panel {
  public:
    Panel(Canvas& canvas, int x, int y, const std::vector<Series>& series_list, bool accuracy)
        : canvas_(canvas), x_(x + kLeft), y_(y + kTop), series_list_(series_list) {
        Range x_range, y_range;
        bool integral_x = true;
        for (const Series& series : series_list)
            for (std::size_t i = 0; i < series.x.size(); ++i)
                if (finite_point(series, i)) {
                    x_range.add(series.x[i]);
                    integral_x = integral_x && std::floor(series.x[i]) == series.x[i];
                    y_range.add(series.y[i]);
                }
        if (!accuracy && y_range.low >= 0) y_range.low = 0;
        constexpr int kTicksX = 8, kTicksY = 6;
        horizontal_ = axis_of(x_range.low, x_range.high, kTicksX, false);
        if (integral_x) horizontal_.step = std::max(horizontal_.step, 1.0);  // there is no epoch 1.5
        vertical_ = axis_of(y_range.low, y_range.high, kTicksY, true);
        if (accuracy && vertical_.high > 1 && y_range.high <= 1) vertical_.high = 1;
    }

    void draw(const std::string& title, const std::string& x_label) {
        canvas_.text(x_ + (kPlotWidth - Canvas::text_width(title, 2)) / 2, y_ - 28, title, kInk, 2);
        canvas_.text(x_ + (kPlotWidth - Canvas::text_width(x_label, 2)) / 2, y_ + kPlotHeight + 38, x_label, kFaint, 2);
        draw_ticks();
        for (std::size_t i = 0; i < series_list_.size(); ++i)
            draw_series(series_list_[i], kLineColors[i % kLineColors.size()]);
        draw_legend(Legend(series_list_));
    }

  private:
    [[nodiscard]] double screen_x(double value) const { return x_ + horizontal_.fraction(value) * kPlotWidth; }
    [[nodiscard]] double screen_y(double value) const { return y_ + (1 - vertical_.fraction(value)) * kPlotHeight; }

    void draw_ticks() {
        for (const double tick : vertical_.ticks()) {
            const int y = static_cast<int>(std::lround(screen_y(tick)));
            canvas_.fill_rect(x_, y, kPlotWidth, 1, kGrid);
            const std::string label = vertical_.label(tick);
            canvas_.text(x_ - 10 - Canvas::text_width(label, 2), y - 7, label, kFaint, 2);
        }
        for (const double tick : horizontal_.ticks()) {
            const int x = static_cast<int>(std::lround(screen_x(tick)));
            canvas_.fill_rect(x, y_, 1, kPlotHeight, kGrid);
            canvas_.fill_rect(x, y_ + kPlotHeight, 1, 5, kFrame);
            const std::string label = horizontal_.label(tick);
            canvas_.text(x - Canvas::text_width(label, 2) / 2, y_ + kPlotHeight + 12, label, kFaint, 2);
        }
        canvas_.fill_rect(x_, y_, 1, kPlotHeight + 1, kFrame);
        canvas_.fill_rect(x_, y_ + kPlotHeight, kPlotWidth + 1, 1, kFrame);
    }

    void draw_curve(const std::vector<double>& x, const std::vector<double>& y, Color color, double width) {
        for (std::size_t i = 1; i < x.size(); ++i)  // the canvas skips non-finite values
            canvas_.line(screen_x(x[i - 1]), screen_y(y[i - 1]), screen_x(x[i]), screen_y(y[i]), color, width);
    }

    void draw_series(const Series& series, Color color) {
        constexpr std::size_t kFewPoints = 60, kManyPoints = 300;
        if (series.x.size() <= kManyPoints) {
            draw_curve(series.x, series.y, color, 2.5);
            if (series.x.size() <= kFewPoints)
                for (std::size_t i = 0; i < series.x.size(); ++i)
                    canvas_.disc(screen_x(series.x[i]), screen_y(series.y[i]), 4, color);
            return;
        }
        // Per-step values are noisy: they are drawn pale in the background, and their moving mean on top.
        const auto pale = [](std::uint8_t channel) {
            return static_cast<std::uint8_t>(255 - (255 - channel) * 3 / 10);
        };
        draw_curve(series.x, series.y, {pale(color.red), pale(color.green), pale(color.blue)}, 1.0);
        constexpr std::size_t kMeans = 120;
        std::vector<double> x, y;
        for (std::size_t group = 0; group < kMeans; ++group) {
            double sum_x = 0, sum_y = 0, count = 0;
            const std::size_t end = (group + 1) * series.x.size() / kMeans;
            for (std::size_t i = group * series.x.size() / kMeans; i < end; ++i)
                if (finite_point(series, i)) {
                    sum_x += series.x[i];
                    sum_y += series.y[i];
                    ++count;
                }
            if (count > 0) {
                x.push_back(sum_x / count);
                y.push_back(sum_y / count);
            }
        }
        draw_curve(x, y, color, 2.5);
    }

    void draw_legend(const Legend& legend) {
        for (const Legend::Entry& entry : legend.entries()) {
            const int x = x_ + entry.x, y = y_ + kPlotHeight + kBottom + entry.row * kLegendLine;
            canvas_.line(x + 2, y + 7, x + kSwatch - 10, y + 7, entry.color, 4);
            canvas_.text(x + kSwatch, y, entry.text, kInk, 2);
        }
    }

    Canvas& canvas_;
    int x_, y_;
    const std::vector<Series>& series_list_;
    Axis horizontal_, vertical_;
};

}  // namespace

io::Image8 learning_curve(const LearningCurve& curve) {
    for (const std::vector<Series>* series_list : {&curve.losses, &curve.accuracies})
        for (const Series& series : *series_list)
            if (series.x.size() != series.y.size())
                throw ValueError(fmt::format("learning_curve: expected as many x as y, series '{}' has {} and {}",
                                             series.name, series.x.size(), series.y.size()));
    const bool two_panels = !curve.losses.empty() && !curve.accuracies.empty();
    const int top = curve.title.empty() ? 0 : kTitleHeight;
    const int legend = std::max(Legend(curve.losses).height(), Legend(curve.accuracies).height());
    Canvas canvas(two_panels ? 2 * kPanelWidth : kPanelWidth, kPanelHeight + top + legend, kPaper);
    canvas.text((canvas.width() - Canvas::text_width(curve.title, 2)) / 2, 16, curve.title, kInk, 2);
    int x = 0;
    if (!curve.losses.empty() || curve.accuracies.empty()) {
        Panel(canvas, x, top, curve.losses, false).draw(curve.losses_label, curve.x_label);
        x += kPanelWidth;
    }
    if (!curve.accuracies.empty())
        Panel(canvas, x, top, curve.accuracies, true).draw(curve.accuracies_label, curve.x_label);
    return canvas.image();
}

io::Image8 prediction_grid(std::span<const Prediction> predictions, int columns, const std::string& title) {
    if (predictions.empty() || columns < 1)
        throw ValueError(fmt::format("prediction_grid: expected at least 1 example and 1 column, got {} and {}",
                                     predictions.size(), columns));
    constexpr int kPictureSize = 96, kGap = 12, kLabelHeight = 30;
    std::vector<std::string> labels;
    int cell_width = 0, picture_height = 0;
    const auto scale_of = [](const io::Image8& image) {
        return std::max(1, kPictureSize / std::max(image.width, image.height));
    };
    for (const Prediction& prediction : predictions) {
        const io::Image8& image = prediction.image;
        image.check("prediction_grid");
        const bool correct = prediction.predicted == prediction.truth;
        labels.push_back(correct ? prediction.predicted
                                 : fmt::format("{} ({})", prediction.predicted, prediction.truth));
        cell_width = std::max({cell_width, image.width * scale_of(image), Canvas::text_width(labels.back(), 2)});
        picture_height = std::max(picture_height, image.height * scale_of(image));
    }
    const int count = static_cast<int>(predictions.size()), used_columns = std::min(columns, count);
    const int rows = (count + columns - 1) / columns, cell_height = picture_height + kLabelHeight;
    const int top = title.empty() ? 0 : kTitleHeight;
    Canvas canvas(std::max(kGap + used_columns * (cell_width + kGap), Canvas::text_width(title, 2) + 2 * kGap),
                  top + kGap + rows * cell_height, kPaper);
    canvas.text((canvas.width() - Canvas::text_width(title, 2)) / 2, 16, title, kInk, 2);
    for (int i = 0; i < count; ++i) {
        const Prediction& prediction = predictions[static_cast<std::size_t>(i)];
        const std::string& label = labels[static_cast<std::size_t>(i)];
        const int scale = scale_of(prediction.image);
        const int x = kGap + i % columns * (cell_width + kGap), y = top + kGap + i / columns * cell_height;
        canvas.draw(x + (cell_width - prediction.image.width * scale) / 2, y, prediction.image, scale);
        canvas.text(x + (cell_width - Canvas::text_width(label, 2)) / 2, y + picture_height + 6, label,
                    prediction.predicted == prediction.truth ? kCorrectColor : kWrongColor, 2);
    }
    return canvas.image();
}

}  // namespace declivity::train
