// Tabular data: predicts one column of a table from the others, by classification or regression, with a network that
// embeds categorical columns. Baselines: a linear model and the mean or class frequencies. Repeated with different
// splits.
//
//     ./tabular --data winequality-red.csv --target quality --plot wine.png
//     ./tabular --data digits_train.csv.gz --test digits.csv.gz
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::size_t kMaxClasses = 50;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---- tables

using Cells = std::vector<std::string>;

struct Table {
    std::string file;
    Cells names;        ///< column names
    Cells class_names;  ///< class names of the last column, if the first line has them
    std::vector<Cells> rows;
};

bool is_missing(const std::string& cell) { return cell.empty() || cell == "?" || cell == "NA" || cell == "nan"; }

std::optional<double> number_of(const std::string& cell) {
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
    return value;
}

/// Splits a line into cells; quoted cells may contain separators, and a doubled quote is a quote.
Cells cells_of(const std::string& line, char separator) {
    Cells cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') cells.back() += line[++i];
        else if (c == '"') quoted = !quoted;
        else if (c == separator && !quoted) cells.emplace_back();
        else if (c != '\r' && (c != ' ' || quoted || !cells.back().empty())) cells.back() += c;
    }
    return cells;
}

Table read_table(const std::string& path) {
    io::GzipFile file(path);
    std::string text(1 << 16, '\0'), all;
    while (const std::size_t count = file.read_some(std::as_writable_bytes(std::span(text))))
        all.append(text, 0, count);
    Table table{.file = path, .names = {}, .class_names = {}, .rows = {}};
    char separator = ',';
    for (std::size_t from = 0; from < all.size();) {
        const std::size_t end = std::min(all.find('\n', from), all.size());
        const std::string line = all.substr(from, end - from);
        from = end + 1;
        if (line.find_first_not_of(" \r") == std::string::npos) continue;
        if (table.rows.empty())
            for (const char character : {';', '\t'})
                if (line.find(',') == std::string::npos && line.find(character) != std::string::npos)
                    separator = character;
        table.rows.push_back(cells_of(line, separator));
    }
    if (table.rows.size() < 3) throw ValueError("tabular: expected at least 3 lines, got fewer in " + path);
    const Cells first = table.rows[0];
    const std::size_t columns = table.rows[1].size();
    const auto numeric = [](const std::string& cell) { return number_of(cell).has_value(); };
    if (first.size() > 2 && std::ranges::count_if(first, numeric) == 2 && number_of(first[1]) == double(columns - 1)) {
        // Header line of scikit-learn's data sets: rows, columns, class names.
        table.class_names.assign(first.begin() + 2, first.end());
        table.rows.erase(table.rows.begin());
    } else if (std::ranges::none_of(first, numeric)) {
        table.names = first;
        table.rows.erase(table.rows.begin());
    }
    while (table.names.size() < columns) table.names.push_back("column " + std::to_string(table.names.size()));
    for (std::size_t i = 0; i < table.rows.size(); ++i)
        if (table.rows[i].size() != columns)
            throw ValueError("tabular: " + path + ": row " + std::to_string(i + 1) + " has " +
                             std::to_string(table.rows[i].size()) + " cells, other rows have " +
                             std::to_string(columns));
    return table;
}

/// Synthetic house prices that depend on size, age and location, with noise.
Table synthetic_houses(std::int64_t count, std::uint64_t seed) {
    Table table{.file = "synthetic houses",
                .names = {"area", "rooms", "age", "distance", "floor", "district", "price"},
                .class_names = {},
                .rows = {}};
    const Cells districts{"harbour", "old town", "hill", "station", "meadows", "mill"};
    data::Random random(seed, 0, 0, data::Purpose::user);
    for (std::int64_t i = 0; i < count; ++i) {
        const float area = random.uniform(30, 200), rooms = 1 + std::floor(area / random.uniform(20, 40));
        const float age = random.uniform(0, 80), distance = random.uniform(0, 30);
        const std::int64_t floor = random.below(8), district = random.below(6);
        const float district_factor = 1 + 0.15F * static_cast<float>((district * 5) % 6 - 2);
        const float price = area * district_factor * (1 + 3 * std::exp(-distance / 10)) * (1.2F - age / 100) +
                            10 * static_cast<float>(floor) + 8 * random.normal();
        const auto text = [](float x) { return std::to_string(x); };
        table.rows.push_back({text(area), text(rooms), text(age), text(distance), std::to_string(floor),
                              districts[at(district)], text(price)});
    }
    return table;
}

// ---- preprocessing

/// Columns of a table as numbers, categories and targets.
struct Columns {
    std::string target;
    bool classes = false;
    Cells class_names;
    std::int64_t count = 0, numeric_count = 0;
    std::vector<double> numbers;           ///< (count, numbers), missing values are NaN
    std::vector<std::int64_t> categories;  ///< (count, sizes)
    std::vector<std::int64_t> sizes;       ///< cardinality of each categorical column
    std::vector<double> targets;           ///< (count), class index or number
};

/// Index of a column given by name or number.
std::size_t column_of(const Table& table, const std::string& target) {
    const auto columns = static_cast<std::int64_t>(table.names.size());
    if (target.empty()) return at(columns - 1);
    const auto found = std::ranges::find(table.names, target);
    if (found != table.names.end()) return static_cast<std::size_t>(found - table.names.begin());
    const std::optional<double> number = number_of(target);
    const auto place = static_cast<std::int64_t>(number.value_or(static_cast<double>(columns)));
    if (place < -columns || place >= columns) {
        std::string all;
        for (const std::string& name : table.names) all += (all.empty() ? "'" : ", '") + name + "'";
        throw ValueError("tabular: expected a target column among " + all + ", or its number, got '" + target + "'");
    }
    return at(place < 0 ? place + columns : place);
}

/// @param task "classes", "numbers", or "auto": classes if the targets are words, or integers counting from 0 without
/// gaps
Columns columns_of(const Table& table, const std::string& target_name, const std::string& task) {
    const std::size_t target = column_of(table, target_name);
    Columns out;
    out.target = table.names[target];
    out.count = static_cast<std::int64_t>(table.rows.size());
    std::vector<std::vector<double>> numbers;
    std::vector<std::vector<std::int64_t>> categories;
    for (std::size_t column = 0; column < table.names.size(); ++column) {
        std::map<std::string, std::int64_t> codes;
        std::vector<double> values;
        bool numeric = true;
        for (const Cells& row : table.rows) {
            const std::optional<double> value = number_of(row[column]);
            codes.emplace(row[column], 0);
            numeric = numeric && (value || is_missing(row[column]));
            values.push_back(value.value_or(kMissing));
        }
        if (column == target) {
            if (std::ranges::any_of(table.rows, [&](const Cells& row) { return is_missing(row[column]); }))
                throw ValueError("tabular: expected a value in each row of '" + out.target + "'");
            const std::set<double> distinct =
                numeric ? std::set<double>(values.begin(), values.end()) : std::set<double>();
            const bool counted = numeric && distinct.size() > 1 && distinct.size() <= kMaxClasses &&
                                 *distinct.begin() == 0 &&
                                 *distinct.rbegin() == static_cast<double>(distinct.size() - 1);
            out.classes = task == "classes" || (task == "auto" && (!numeric || counted));
            if (!out.classes) {
                if (!numeric) throw ValueError("tabular: expected numbers in '" + out.target + "', got words");
                out.targets = values;
                continue;
            }
            std::int64_t next = 0;
            std::vector<std::string> order;
            for (auto& [word, number] : codes) order.push_back(word);
            if (numeric)
                std::ranges::sort(order, {}, [](const std::string& word) { return number_of(word).value_or(0); });
            for (const std::string& word : order) codes[word] = next++;
            if (order.size() < 2 || order.size() > kMaxClasses)
                throw ValueError("tabular: expected 2 to 50 classes in '" + out.target + "', got " +
                                 std::to_string(order.size()));
            out.class_names = table.class_names.size() == order.size() ? table.class_names : order;
            for (const Cells& row : table.rows) out.targets.push_back(static_cast<double>(codes[row[column]]));
        } else if (numeric) {
            numbers.push_back(values);
        } else {
            std::int64_t next = 0;
            for (auto& [word, number] : codes) number = next++;
            out.sizes.push_back(next);
            categories.emplace_back();
            for (const Cells& row : table.rows) categories.back().push_back(codes[row[column]]);
        }
    }
    if (numbers.empty()) numbers.emplace_back(table.rows.size(), 0.0);  // the network expects at least one number
    out.numeric_count = static_cast<std::int64_t>(numbers.size());
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        for (const auto& column : numbers) out.numbers.push_back(column[row]);
        for (const auto& column : categories) out.categories.push_back(column[row]);
    }
    return out;
}

/// Mean and standard deviation of each numeric column and of the target over a set of rows.
struct Scale {
    std::vector<double> mean, deviation;
    double target_mean = 0, target_deviation = 1;

    Scale(const Columns& columns, const std::vector<std::int64_t>& rows) {
        const auto mean_and_deviation_of = [&](const auto& value) {
            double sum = 0, square = 0, count = 0;
            for (const std::int64_t row : rows) {
                const double x = value(row);
                if (std::isnan(x)) continue;
                sum += x, square += x * x, count += 1;
            }
            const double middle = count > 0 ? sum / count : 0;
            const double variance = count > 0 ? std::max(0.0, square / count - middle * middle) : 0;
            return std::pair(middle, variance > 1e-12 * (1 + middle * middle) ? std::sqrt(variance) : 1.0);
        };
        for (std::int64_t column = 0; column < columns.numeric_count; ++column) {
            const auto [middle, spread] = mean_and_deviation_of(
                [&](std::int64_t row) { return columns.numbers[at(row * columns.numeric_count + column)]; });
            mean.push_back(middle);
            deviation.push_back(spread);
        }
        if (!columns.classes)
            std::tie(target_mean, target_deviation) =
                mean_and_deviation_of([&](std::int64_t row) { return columns.targets[at(row)]; });
    }
};

data::TensorDataset dataset_of(const Columns& columns, const Scale& scale, const std::vector<std::int64_t>& rows) {
    std::vector<float> numbers, targets;
    std::vector<std::int64_t> categories, labels;
    const auto fields = static_cast<std::int64_t>(columns.sizes.size());
    for (const std::int64_t row : rows) {
        for (std::int64_t i = 0; i < columns.numeric_count; ++i) {
            const double x = columns.numbers[at(row * columns.numeric_count + i)];
            // Missing values are replaced by the mean.
            numbers.push_back(std::isnan(x) ? 0 : static_cast<float>((x - scale.mean[at(i)]) / scale.deviation[at(i)]));
        }
        for (std::int64_t i = 0; i < fields; ++i) categories.push_back(columns.categories[at(row * fields + i)]);
        labels.push_back(columns.classes ? static_cast<std::int64_t>(columns.targets[at(row)]) : 0);
        targets.push_back(static_cast<float>((columns.targets[at(row)] - scale.target_mean) / scale.target_deviation));
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    std::vector<std::pair<std::string, io::HostArray>> arrays{
        {"numbers", io::HostArray::of({count, columns.numeric_count}, numbers)}};
    if (fields > 0) arrays.emplace_back("categories", io::HostArray::of({count, fields}, categories));
    if (columns.classes) arrays.emplace_back("target", io::HostArray::of({count}, labels));
    else arrays.emplace_back("target", io::HostArray::of({count}, targets));
    return data::TensorDataset(arrays);
}

/// Maps numbers (N, C) and categories (N, F) to scores (N, classes), or to a number (N). Linear without hidden layers.
struct Network : nn::Callable<Tensor(Tensor numbers, Tensor categories)> {
    nn::ModuleList<nn::Embedding>& embeddings = add("embeddings", nn::ModuleList<nn::Embedding>());
    nn::Sequential& layers = add("layers", nn::Sequential());
    bool classes;

    Network(const Columns& columns, const std::vector<std::int64_t>& hidden, double dropout)
        : classes(columns.classes) {
        std::int64_t width = columns.numeric_count;
        for (const std::int64_t size : columns.sizes) {
            const std::int64_t elements = std::min<std::int64_t>(16, (size + 1) / 2);
            nn::normal_(embeddings.append(nn::Embedding(size, elements)).weight().detach(), 0, 0.3);
            width += elements;
        }
        for (const std::int64_t size : hidden) {
            layers.append(nn::Linear(width, size));
            layers.append(nn::ReLU());
            layers.append(nn::Dropout(dropout));
            width = size;
        }
        layers.append(nn::Linear(width, classes ? static_cast<std::int64_t>(columns.class_names.size()) : 1));
    }
    Tensor forward(Tensor numbers, Tensor categories) override {
        std::vector<Tensor> parts{numbers};
        std::int64_t field = 0;
        for (nn::Embedding& embedding : embeddings) parts.push_back(embedding(select(categories, 1, field++)));
        const Tensor y = layers(parts.size() == 1 ? numbers : concat(parts, 1));
        return classes ? y : squeeze(y, 1);
    }
    [[nodiscard]] const std::type_info& capture_safe() const override { return typeid(Network); }
};

/// Restores the weights of the epoch with the lowest validation loss.
class KeepBest : public train::Callback {
  public:
    void after_epoch(train::Trainer& trainer, const train::EpochMetrics& metrics) override {
        if (!(metrics["valid_loss"] < lowest_loss_)) return;
        lowest_loss_ = metrics["valid_loss"];
        best_.clear();
        for (const auto& [name, tensor] : trainer.model().state_dict())
            best_.push_back({name, tensor.detach().clone()});
    }
    void on_end(train::Trainer& trainer) override {
        if (!best_.empty()) (void)trainer.model().load_state_dict(best_);
    }

  private:
    double lowest_loss_ = std::numeric_limits<double>::infinity();
    StateDict best_;
};

// ---- results

struct Result {
    std::string name;
    std::vector<double> accuracy_or_error, loss_or_share;  // one value per repetition
};

/// Classification: accuracy and cross entropy. Regression: RMSE and R^2, the fraction of variance explained.
std::pair<double, double> evaluate(const Columns& columns, const std::vector<std::int64_t>& rows,
                                   const std::vector<std::vector<double>>& predictions) {
    double right = 0, loss = 0, squares = 0, spread = 0, mean = 0;
    const auto count = static_cast<double>(rows.size());
    for (const std::int64_t row : rows) mean += columns.targets[at(row)] / count;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double target = columns.targets[at(rows[i])];
        if (columns.classes) {
            const auto best = std::ranges::max_element(predictions[i]) - predictions[i].begin();
            right += static_cast<double>(best) == target ? 1 / count : 0;
            loss -= std::log(std::max(1e-12, predictions[i][at(static_cast<std::int64_t>(target))])) / count;
        } else {
            squares += std::pow(predictions[i][0] - target, 2) / count;
            spread += std::pow(mean - target, 2) / count;
        }
    }
    return columns.classes ? std::pair(right, loss) : std::pair(std::sqrt(squares), 1 - squares / spread);
}

std::pair<double, double> mean_and_deviation(const std::vector<double>& values) {
    double mean = 0, square = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values) square += std::pow(value - mean, 2) / static_cast<double>(values.size());
    return {mean, std::sqrt(square)};
}

/// Predictions on the last test set: a confusion matrix for classes, a scatter plot for numbers.
io::Image8 picture(const Columns& columns, const std::vector<std::int64_t>& rows,
                   const std::vector<std::vector<double>>& predictions, const std::vector<train::Series>& curves) {
    const io::Image8 curve =
        train::learning_curve({.title = "Validation loss by epoch",
                               .losses = curves,
                               .losses_label = columns.classes ? "cross entropy" : "squared error / variance"});
    constexpr int kSide = 380, kEdge = 20, kWords = 110;
    io::Canvas canvas(curve.width + kWords + kSide + kEdge, std::max(curve.height, kSide + 170), {255, 255, 255});
    canvas.draw(0, 0, curve);
    const int left = curve.width + kWords, top = 50;
    const io::Color ink{40, 40, 40};
    canvas.text(curve.width + 10, 20, "Test set: predicted (across) against actual (down)", ink);
    if (columns.classes) {
        const auto classes = static_cast<int>(columns.class_names.size()), cell = kSide / classes;
        std::vector<double> counts(static_cast<std::size_t>(classes * classes)),
            totals(static_cast<std::size_t>(classes));
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto label = static_cast<std::int64_t>(columns.targets[at(rows[i])]);
            counts[at(label * classes + (std::ranges::max_element(predictions[i]) - predictions[i].begin()))] += 1;
            totals[at(label)] += 1;
        }
        for (int row = 0; row < classes; ++row) {
            const std::string name = columns.class_names[at(row)].substr(0, 15);
            canvas.text(curve.width + 10, top + row * cell + cell / 2 - 4, name, ink);
            canvas.text_upwards(left + row * cell + cell / 2 - 4,
                                top + classes * cell + 8 + io::Canvas::text_width(name), name, ink);
            for (int column = 0; column < classes; ++column) {
                const double count = counts[at(row * classes + column)], share = count / std::max(1.0, totals[at(row)]);
                const auto light = static_cast<std::uint8_t>(255 - 215 * std::sqrt(share));
                canvas.fill_rect(left + column * cell, top + row * cell, cell - 1, cell - 1, {light, light, 255});
                if (count > 0)
                    canvas.text(left + column * cell + cell / 2 - 8, top + row * cell + cell / 2 - 4,
                                std::to_string(static_cast<int>(count)), share > 0.4 ? io::Color{255, 255, 255} : ink);
            }
        }
        return canvas.image();
    }
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const std::int64_t row : rows) {
        low = std::min(low, columns.targets[at(row)]);
        high = std::max(high, columns.targets[at(row)]);
    }
    const auto x_of = [&](double x) { return left + kSide * (x - low) / (high - low); };
    const auto y_of = [&](double x) { return top + kSide * (x - low) / (high - low); };
    canvas.fill_rect(left, top, kSide, kSide, {244, 246, 250});
    canvas.line(left, top, left + kSide, top + kSide, {150, 150, 150});
    for (std::size_t i = 0; i < rows.size(); ++i)
        canvas.disc(x_of(std::clamp(predictions[i][0], low, high)), y_of(columns.targets[at(rows[i])]), 2.5,
                    {60, 90, 200});
    char text[32];
    for (const double value : {low, (low + high) / 2, high}) {
        std::snprintf(text, sizeof text, "%.4g", value);
        canvas.text(left - 8 - io::Canvas::text_width(text), static_cast<int>(y_of(value)) - 4, text, ink);
        canvas.text(static_cast<int>(x_of(value)) - io::Canvas::text_width(text) / 2, top + kSide + 8, text, ink);
    }
    return canvas.image();
}

}  // namespace

int main(int argc, char** argv) {
    std::string data_file, test_file, target, task = "auto", device, plot;
    std::int64_t epochs = 150, batch = 64, repeats = 5, width = 64, layers = 2;
    double lr = 3e-3, dropout = 0.2, decay = 0.05;
    std::uint64_t seed = 1;
    CLI::App app("Predicts one column of a table from the others; baselines: a linear model and the mean.");
    app.add_option("--data", data_file,
                   "table (CSV, optionally gzip), with or without a header line (default: synthetic houses)");
    app.add_option("--target", target, "name or number of the target column (default: the last one)");
    app.add_option("--task", task, "task: classes, numbers, or auto (by the values of the target column)")
        ->check(CLI::IsMember({"auto", "classes", "numbers"}))
        ->capture_default_str();
    app.add_option("--test", test_file, "test table with the same columns (default: a fifth of the rows)");
    app.add_option("--device", device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--epochs", epochs, "maximum number of epochs")->capture_default_str();
    app.add_option("--batch", batch, "batch size")->capture_default_str();
    app.add_option("--lr", lr, "learning rate")->capture_default_str();
    app.add_option("--width", width, "units per hidden layer")->capture_default_str();
    app.add_option("--layers", layers, "number of hidden layers")->check(CLI::Range(0, 20))->capture_default_str();
    app.add_option("--dropout", dropout, "dropout probability")->capture_default_str();
    app.add_option("--weight-decay", decay, "weight decay of AdamW")->capture_default_str();
    app.add_option("--repeats", repeats, "repetitions, each with another validation and test split")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--seed", seed, "random seed")->capture_default_str();
    app.add_option("--plot", plot, "PNG file for the last repetition");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!device.empty()) set_default_device(Device::select(device));
        if (data_file.empty()) std::puts("no --data: using synthetic houses");
        Table table = data_file.empty() ? synthetic_houses(3000, seed) : read_table(data_file);
        const auto own_rows = static_cast<std::int64_t>(table.rows.size());
        if (!test_file.empty()) {
            const Table other = read_table(test_file);
            if (other.names.size() != table.names.size())
                throw ValueError("tabular: expected " + std::to_string(table.names.size()) + " columns in " +
                                 test_file + ", got " + std::to_string(other.names.size()));
            table.rows.insert(table.rows.end(), other.rows.begin(), other.rows.end());
        }
        const Columns columns = columns_of(table, target, task);
        std::printf("%s: %lld rows, %lld numeric columns, %zu categorical, '%s' as %s\n", table.file.c_str(),
                    static_cast<long long>(columns.count), static_cast<long long>(columns.numeric_count),
                    columns.sizes.size(), columns.target.c_str(), columns.classes ? "classes" : "numbers");
        if (own_rows < 20) throw ValueError("tabular: expected at least 20 rows, got " + std::to_string(own_rows));

        std::vector<Result> results{{columns.classes ? "largest class" : "mean", {}, {}},
                                    {columns.classes ? "logistic regression" : "linear regression", {}, {}},
                                    {"network", {}, {}}};
        std::vector<train::Series> curves;
        std::vector<std::vector<double>> predictions;
        std::vector<std::int64_t> test;
        for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
            manual_seed(seed + static_cast<std::uint64_t>(repeat));
            const std::vector<std::int64_t> order =
                data::shuffled_order(own_rows, seed, static_cast<std::uint64_t>(repeat));
            const std::int64_t test_count = test_file.empty() ? own_rows / 5 : 0, valid = (own_rows - test_count) / 5;
            test.assign(order.begin(), order.begin() + test_count);
            for (std::int64_t row = own_rows; row < columns.count; ++row) test.push_back(row);
            const std::vector<std::int64_t> valid_rows(order.begin() + test_count, order.begin() + test_count + valid),
                train_rows(order.begin() + test_count + valid, order.end());
            const Scale scale(columns, train_rows);
            const data::TensorDataset train_set = dataset_of(columns, scale, train_rows),
                                      valid_set = dataset_of(columns, scale, valid_rows),
                                      test_set = dataset_of(columns, scale, test);

            // Baseline: class frequencies, or the mean.
            std::vector<double> baseline(columns.classes ? columns.class_names.size() : 1, scale.target_mean);
            if (columns.classes)
                for (const std::int64_t row : train_rows)
                    baseline[at(static_cast<std::int64_t>(columns.targets[at(row)]))] +=
                        1 / static_cast<double>(train_rows.size());
            const auto add_result = [&](Result& result) {
                const auto [first, second] = evaluate(columns, test, predictions);
                result.accuracy_or_error.push_back(first);
                result.loss_or_share.push_back(second);
            };
            predictions.assign(test.size(), baseline);
            add_result(results[0]);
            curves.clear();
            for (Result& result : {std::ref(results[1]), std::ref(results[2])}) {
                const bool linear = &result == &results[1];
                Network network(columns, std::vector<std::int64_t>(linear ? 0 : at(layers), width), dropout);
                optim::AdamW optimizer(network.parameters(),
                                       {.lr = linear ? 5 * lr : lr, .weight_decay = linear ? 0 : decay});
                std::vector<std::string> inputs{"numbers"};
                if (!columns.sizes.empty()) inputs.emplace_back("categories");
                train::ModelOptions fields{.inputs = inputs, .target = "target"};
                train::Trainer trainer(
                    network, optimizer,
                    columns.classes ? train::Loss(nn::CrossEntropyLoss()) : train::Loss(nn::MSELoss()), fields);
                trainer.fit(train_set, {{"valid", valid_set}},
                            {.epochs = epochs,
                             .batch = std::min<std::int64_t>(batch, std::max<std::int64_t>(8, own_rows / 20)),
                             .seed = seed,
                             .callbacks = {std::make_shared<train::EarlyStopping>(
                                               25, 0, train::Monitor{.metric = "valid_loss"}),
                                           std::make_shared<KeepBest>()},
                             .quiet = true});
                train::Series curve{.name = linear ? "linear" : "network", .x = {}, .y = {}};
                for (const train::EpochMetrics& metrics : trainer.progress().history) {
                    curve.x.push_back(static_cast<double>(metrics.epoch));
                    curve.y.push_back(metrics["valid_loss"]);
                }
                curves.push_back(curve);
                const Tensor output = trainer.predict(test_set);
                const std::vector<float> values =
                    (columns.classes ? softmax(output, 1) : output * scale.target_deviation + scale.target_mean)
                        .to_vector<float>();
                const std::size_t outputs_per_row = values.size() / test.size();
                for (std::size_t i = 0; i < test.size(); ++i)
                    predictions[i].assign(values.begin() + static_cast<std::ptrdiff_t>(i * outputs_per_row),
                                          values.begin() + static_cast<std::ptrdiff_t>((i + 1) * outputs_per_row));
                add_result(result);
                std::printf("%lld/%lld  %-20s %3zu epochs  %s %.4f\n", static_cast<long long>(repeat + 1),
                            static_cast<long long>(repeats), result.name.c_str(), curve.x.size(),
                            columns.classes ? "accuracy" : "error", result.accuracy_or_error.back());
                std::fflush(stdout);
            }
        }
        if (!plot.empty()) io::write_png(plot, picture(columns, test, predictions, curves));
        std::printf("\ntest set, mean and standard deviation of %lld repetitions\n%-22s %-20s %s\n",
                    static_cast<long long>(repeats), "", columns.classes ? "accuracy" : "RMSE",
                    columns.classes ? "cross entropy" : "R2");
        for (const Result& result : results) {
            const auto [first, first_deviation] = mean_and_deviation(result.accuracy_or_error);
            const auto [second, second_deviation] = mean_and_deviation(result.loss_or_share);
            std::printf("%-22s %-9.4f +- %-7.4f %.4f +- %.4f\n", result.name.c_str(), first, first_deviation, second,
                        second_deviation);
        }
        return 0;
    });
}
