// Layer 5. What a data set is: examples by index, on the host. Loaders bring them to a device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <declivity/data/example.hpp>
#include <declivity/export.hpp>
#include <declivity/ops/shape.hpp>

namespace declivity::data {

class Loader;

/// Which part of a published data set.
enum class Split : std::uint8_t { train, test };

/// A number of examples, each a list of tensors on the host: the data set's fields. Reading is const and may be done by
/// several threads at once. A data set of your own overrides size, fields and do_example, which gets a checked index;
/// images with labels derive from ClassificationDataset instead.
class DECLIVITY_API Dataset {
  public:
    Dataset() = default;
    virtual ~Dataset();

    /// Number of examples.
    [[nodiscard]] virtual std::int64_t size() const = 0;
    /// What each example has, in order. The same for each call.
    [[nodiscard]] virtual std::vector<Field> fields() const = 0;
    /// By its name. @throws ValueError naming those there are
    [[nodiscard]] Field field(std::string_view name) const;
    /// An example, copied.
    /// @throws ValueError when there is no such index; ShapeError, TypeError and ValueError when it is not what
    /// fields() says, naming field and example
    [[nodiscard]] Example example(std::int64_t index) const;

  protected:
    Dataset(const Dataset&) = default;
    Dataset(Dataset&&) = default;
    Dataset& operator=(const Dataset&) = default;
    Dataset& operator=(Dataset&&) = default;

    /// One place of memory for each field, each of its field's type and shape.
    using FlatIndices = std::span<const std::span<std::byte>>;
    /// do_example and do_read of another data set, for those that wrap one. Indices are not checked.
    static std::vector<io::HostArray> example_of(const Dataset& other, std::int64_t index) {
        return other.do_example(index);
    }
    static void read_of(const Dataset& other, std::int64_t index, FlatIndices places) { other.do_read(index, places); }

  private:
    friend class Loader;
    /// The tensors of an example, in the order of the fields.
    [[nodiscard]] virtual std::vector<io::HostArray> do_example(std::int64_t index) const = 0;
    /// The same, written to where a batch is put together: called where every field has a fixed shape, and there for
    /// speed alone. By default it copies what do_example gives.
    virtual void do_read(std::int64_t index, FlatIndices places) const;
};

/// Features of one shape and the number of a class: two fields, "image" where shape() has three axes (channels, height,
/// width) and otherwise "features", f32, and "label", i64 and of shape []. One of your own overrides size, shape,
/// classes, do_features and do_label.
class DECLIVITY_API ClassificationDataset : public Dataset {
  public:
    ~ClassificationDataset() override;

    /// Shape of one example's features; images are C,H,W, with values 0 to 1.
    [[nodiscard]] virtual Shape shape() const = 0;
    /// Labels are 0 .. classes() - 1.
    [[nodiscard]] virtual std::int64_t classes() const = 0;
    /// One name for each class; "0", "1", ... unless the data set knows better.
    [[nodiscard]] virtual std::vector<std::string> class_names() const;
    [[nodiscard]] std::vector<Field> fields() const final;

    /// Writes the features of an example, row-major.
    /// @throws ValueError when there is no such index; ShapeError unless `features` has shape().numel() places
    void read(std::int64_t index, std::span<float> features) const;
    /// The label of an example. @throws ValueError when there is no such index
    [[nodiscard]] std::int64_t label(std::int64_t index) const;

  protected:
    ClassificationDataset() = default;
    ClassificationDataset(const ClassificationDataset&) = default;
    ClassificationDataset(ClassificationDataset&&) = default;
    ClassificationDataset& operator=(const ClassificationDataset&) = default;
    ClassificationDataset& operator=(ClassificationDataset&&) = default;

  private:
    virtual void do_features(std::int64_t index, std::span<float> features) const = 0;
    [[nodiscard]] virtual std::int64_t do_label(std::int64_t index) const = 0;
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const final;
    void do_read(std::int64_t index, FlatIndices places) const final;
};

/// Features and labels held in memory, the features as floats or as bytes. A byte b reads as b / 255.
class DECLIVITY_API InMemoryDataset : public ClassificationDataset {
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
    void do_features(std::int64_t index, std::span<float> features) const override;
    [[nodiscard]] std::int64_t do_label(std::int64_t index) const override;

    Shape shape_;
    Values values_;
    std::vector<std::int64_t> labels_;
    std::int64_t classes_;
    std::vector<std::string> class_names_;
};

/// Whole arrays of any types, of which example i is element i of the first axis:
///
///     data::TensorDataset set({{"image", images}, {"mask", masks}});  // io::HostArray (N, C, H, W) and (N, H, W)
class DECLIVITY_API TensorDataset : public Dataset {
  public:
    /// @throws ShapeError unless all have as many elements along a first axis, naming the field; ValueError for no
    /// array, or a name that comes twice
    explicit TensorDataset(std::vector<std::pair<std::string, io::HostArray>> arrays);
    ~TensorDataset() override;

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] std::vector<Field> fields() const override { return fields_; }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FlatIndices places) const override;
    [[nodiscard]] std::span<const std::byte> part(std::size_t field, std::int64_t index) const;

    std::vector<Field> fields_;
    std::vector<io::HostArray> arrays_;
    std::int64_t size_ = 0;
};

/// Examples that a function makes of their index, such as one that reads files. It is called by several threads at
/// once.
class DECLIVITY_API FunctionDataset : public Dataset {
  public:
    using Read = std::function<std::vector<io::HostArray>(std::int64_t index)>;
    /// @param fields what the function gives, in order
    /// @throws ValueError for a negative size, no field, a name that comes twice, or an empty function
    FunctionDataset(std::int64_t size, std::vector<Field> fields, Read read);
    ~FunctionDataset() override;

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] std::vector<Field> fields() const override { return fields_; }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override { return read_(index); }

    std::int64_t size_;
    std::vector<Field> fields_;
    Read read_;
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
    [[nodiscard]] std::vector<Field> fields() const override { return whole_->fields(); }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FlatIndices places) const override;

    std::shared_ptr<const Dataset> whole_;
    std::vector<std::int64_t> indices_;
};

/// The examples of several data sets, one set after the other.
class DECLIVITY_API ConcatDataset : public Dataset {
  public:
    /// Fields that have different shapes in the parts have no fixed one here.
    /// @throws ValueError for no part, a null one, or one whose fields have other names or number; TypeError for other
    /// types
    explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);
    ~ConcatDataset() override;

    [[nodiscard]] std::int64_t size() const override { return ends_.back(); }
    [[nodiscard]] std::vector<Field> fields() const override { return fields_; }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FlatIndices places) const override;
    /// The part that has it, and its index there.
    [[nodiscard]] std::pair<const Dataset&, std::int64_t> find(std::int64_t index) const;

    std::vector<std::shared_ptr<const Dataset>> parts_;
    std::vector<std::int64_t> ends_;
    std::vector<Field> fields_;
};

/// The first `count` examples, or all when there are not so many.
/// @throws ValueError when `count` is negative or `whole` is null
DECLIVITY_API std::shared_ptr<const Dataset> take(std::shared_ptr<const Dataset> whole, std::int64_t count);

}  // namespace declivity::data
