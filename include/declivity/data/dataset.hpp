// Floor 5. What a data set is: examples by index, on the host. Loaders bring them to a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::data {

/// Which part of a published data set.
enum class Split : std::uint8_t { train, test };

/// A fixed number of examples, each with features of one shape and a label. Reading is const and may be done by
/// several threads at once. A data set of your own overrides the `do_` functions, which get checked arguments.
class DECLIVITY_API Dataset {
  public:
    Dataset() = default;
    virtual ~Dataset();

    /// Number of examples.
    [[nodiscard]] virtual std::int64_t size() const = 0;
    /// Shape of one example's features; images are C,H,W, with values 0 to 1.
    [[nodiscard]] virtual Shape shape() const = 0;
    /// Labels are 0 .. classes() - 1.
    [[nodiscard]] virtual std::int64_t classes() const = 0;
    /// One name for each class; "0", "1", ... unless the data set knows better.
    [[nodiscard]] virtual std::vector<std::string> class_names() const;

    /// Writes the features of an example, row-major.
    /// @throws ValueError when there is no such index; ShapeError unless `features` has shape().numel() places
    void read(std::int64_t index, std::span<float> features) const;
    /// The label of an example. @throws ValueError when there is no such index
    [[nodiscard]] std::int64_t label(std::int64_t index) const;

  protected:
    Dataset(const Dataset&) = default;
    Dataset(Dataset&&) = default;
    Dataset& operator=(const Dataset&) = default;
    Dataset& operator=(Dataset&&) = default;

  private:
    virtual void do_read(std::int64_t index, std::span<float> features) const = 0;
    [[nodiscard]] virtual std::int64_t do_label(std::int64_t index) const = 0;
};

/// Examples held in memory, as floats or as bytes. A byte b reads as b / 255.
class DECLIVITY_API InMemoryDataset : public Dataset {
  public:
    /// @param shape of one example
    /// @param values all features, example after example: labels.size() * shape.numel() of them
    /// @param labels 0 .. classes - 1
    /// @param class_names none, or one for each class
    /// @throws ShapeError when the numbers of values, labels and names do not fit; ValueError for a label out of range
    InMemoryDataset(const Shape& shape, std::vector<float> values, std::vector<std::int64_t> labels,
                    std::int64_t classes, std::vector<std::string> class_names = {});
    InMemoryDataset(const Shape& shape, std::vector<std::uint8_t> values, std::vector<std::int64_t> labels,
                    std::int64_t classes, std::vector<std::string> class_names = {});
    ~InMemoryDataset() override;

    [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
    [[nodiscard]] Shape shape() const override { return shape_; }
    [[nodiscard]] std::int64_t classes() const override { return classes_; }
    [[nodiscard]] std::vector<std::string> class_names() const override;

  private:
    using Values = std::variant<std::vector<float>, std::vector<std::uint8_t>>;
    void check() const;
    void do_read(std::int64_t index, std::span<float> features) const override;
    [[nodiscard]] std::int64_t do_label(std::int64_t index) const override;

    Shape shape_;
    Values values_;
    std::vector<std::int64_t> labels_;
    std::int64_t classes_;
    std::vector<std::string> class_names_;
};

/// Chosen examples of another data set, in the order given; an index may occur several times.
class DECLIVITY_API Subset : public Dataset {
  public:
    /// @throws ValueError when `whole` is null or has no such index
    Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
    /// The examples first .. last - 1.
    Subset(std::shared_ptr<const Dataset> whole, std::int64_t first, std::int64_t last);
    ~Subset() override;

    [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
    [[nodiscard]] Shape shape() const override { return whole_->shape(); }
    [[nodiscard]] std::int64_t classes() const override { return whole_->classes(); }
    [[nodiscard]] std::vector<std::string> class_names() const override { return whole_->class_names(); }

  private:
    void do_read(std::int64_t index, std::span<float> features) const override;
    [[nodiscard]] std::int64_t do_label(std::int64_t index) const override;

    std::shared_ptr<const Dataset> whole_;
    std::vector<std::int64_t> indices_;
};

/// The first `count` examples, or all when there are not so many.
/// @throws ValueError when `count` is negative or `whole` is null
DECLIVITY_API std::shared_ptr<const Dataset> take(std::shared_ptr<const Dataset> whole, std::int64_t count);

}  // namespace declivity::data
