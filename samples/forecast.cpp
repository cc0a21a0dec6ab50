// Time-series forecasting: an LSTM (S. Hochreiter, J. Schmidhuber, 1997) predicts the next day's temperature; baseline:
// the naive forecast, which repeats the last day.
//
//     ./forecast --data daily-min-temperatures.csv --plot forecast.png
#include <cmath>
#include <fstream>
#include <numbers>
#include <sstream>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kDays = 60, kYear = 365;

/// Synthetic daily temperatures: a yearly season, autocorrelated weather, and noise.
std::vector<float> synthetic_weather(std::int64_t days) {
    data::Random random(1, 0, 0, data::Purpose::user);
    std::vector<float> series;
    float weather = 0;
    for (std::int64_t day = 0; day < days; ++day) {
        weather = 0.7F * weather + 1.8F * random.normal();
        const double season = std::cos(2 * std::numbers::pi * static_cast<double>(day) / 365.25);
        series.push_back(static_cast<float>(11 + 4 * season) + weather);
    }
    return series;
}

/// Reads the second column of a CSV file with a header line.
std::vector<float> second_column(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw ValueError("forecast: cannot read " + path);
    std::vector<float> series;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        const std::size_t comma = line.find(',');
        if (comma == std::string::npos) continue;
        std::istringstream number(line.substr(comma + 1));
        float value = 0;
        if (!(number >> value)) throw ValueError("forecast: " + path + ": expected a number, got '" + line + "'");
        series.push_back(value);
    }
    return series;
}

/// Maps days (N, T) of normalised temperatures and their seasons (N, T, 2) to the next day (N).
struct Network : nn::Callable<Tensor(Tensor days, Tensor seasons)> {
    nn::LSTM& lstm = add("lstm", nn::LSTM(3, 32, {.batch_first = true}));
    nn::Dropout& dropout = add("dropout", nn::Dropout(0.2));
    nn::Linear& head = add("head", nn::Linear(32, 1));

    Tensor forward(Tensor days, Tensor seasons) override {
        const Tensor y = lstm(concat({unsqueeze(days, 2), seasons}, 2)).y;
        // The network predicts the difference from the last day.
        return squeeze(head(dropout(select(y, 1, -1))), 1) + select(days, 1, -1);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Network); }
};

/// The windows that end before the days first .. last.
data::TensorDataset windows(const std::vector<float>& series, std::int64_t first, std::int64_t last) {
    std::vector<float> days, seasons, next;
    for (std::int64_t day = first; day < last; ++day) {
        for (std::int64_t t = day - kDays; t < day; ++t) {
            days.push_back(series[static_cast<std::size_t>(t)]);
            const double angle = 2 * std::numbers::pi * static_cast<double>(t + 1) / 365.25;
            seasons.push_back(static_cast<float>(std::sin(angle)));
            seasons.push_back(static_cast<float>(std::cos(angle)));
        }
        next.push_back(series[static_cast<std::size_t>(day)]);
    }
    const std::int64_t count = last - first;
    return data::TensorDataset({{"days", io::HostArray::of({count, kDays}, days)},
                                {"seasons", io::HostArray::of({count, kDays, 2}, seasons)},
                                {"next", io::HostArray::of({count}, next)}});
}

}  // namespace

int main(int argc, char** argv) {
    std::string data_file, device, plot;
    std::int64_t epochs = 30;
    std::uint64_t seed = 1;
    CLI::App app("Time-series forecasting of daily temperatures with an LSTM, compared with a naive baseline.");
    app.add_option("--data", data_file,
                   "CSV file with daily temperatures in its second column (default: synthetic temperatures)");
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "epochs")->capture_default_str();
    app.add_option("--seed", seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for the forecast of the last year");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        manual_seed(seed);
        if (data_file.empty()) std::puts("no --data: using synthetic temperatures");
        std::vector<float> series = data_file.empty() ? synthetic_weather(10 * kYear) : second_column(data_file);
        const auto days = static_cast<std::int64_t>(series.size());
        if (days < 3 * kYear) throw ValueError("forecast: expected at least three years of days");
        double mean = 0, square = 0;
        for (std::int64_t day = 0; day < days - kYear; ++day) mean += series[static_cast<std::size_t>(day)];
        mean /= static_cast<double>(days - kYear);
        for (std::int64_t day = 0; day < days - kYear; ++day)
            square += std::pow(series[static_cast<std::size_t>(day)] - mean, 2);
        const double deviation = std::sqrt(square / static_cast<double>(days - kYear));
        for (float& curve : series) curve = static_cast<float>((curve - mean) / deviation);

        // The last year is the test set, the year before is the validation set for early stopping.
        const data::TensorDataset train = windows(series, kDays, days - 2 * kYear),
                                  valid = windows(series, days - 2 * kYear, days - kYear),
                                  test = windows(series, days - kYear, days);
        Network network;
        optim::AdamW optimizer(network.parameters(), {.lr = 2e-3, .weight_decay = 0.01});
        train::Trainer trainer(network, optimizer, nn::MSELoss());
        trainer.fit(train, valid,
                    {.epochs = epochs,
                     .batch = 64,
                     .seed = seed,
                     .clip_norm = 1,
                     .callbacks = {std::make_shared<train::LearningRate>(optim::cosine(epochs, 0.02),
                                                                         train::LearningRate::Unit::epoch)}});
        const std::vector<float> predictions = trainer.predict(test).to_vector<float>();
        train::Series measured{.name = "measured", .x = {}, .y = {}}, forecast{.name = "LSTM", .x = {}, .y = {}};
        double network_error = 0, naive_error = 0;
        for (std::int64_t i = 0; i < kYear; ++i) {
            const auto at = [&](std::int64_t day) { return series[static_cast<std::size_t>(days - kYear + day)]; };
            network_error += std::pow(predictions[static_cast<std::size_t>(i)] - at(i), 2);
            naive_error += std::pow(at(i - 1) - at(i), 2);
            for (auto& [to, value] :
                 {std::pair(&measured, at(i)), std::pair(&forecast, predictions[static_cast<std::size_t>(i)])}) {
                to->x.push_back(static_cast<double>(i));
                to->y.push_back(value * deviation + mean);
            }
        }
        if (!plot.empty())
            io::write_png(plot, train::learning_curve({.title = "The last year",
                                                       .x_label = "day",
                                                       .losses = {measured, forecast},
                                                       .losses_label = "temperature"}));
        const auto error = [&](double sum) { return deviation * std::sqrt(sum / static_cast<double>(kYear)); };
        std::printf("RMSE in degrees: LSTM %.3f, naive %.3f\n", error(network_error), error(naive_error));
        return network_error < naive_error ? 0 : 1;
    });
}
