// Layer 7. Data sets: examples by index, on the host. A Loader copies them to a device.
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

/// @addtogroup data
/// @{

class Loader;

/// Split of a published data set.
enum class Split : std::uint8_t { train, test };

/// Indexed collection of examples; each example is a list of host tensors, the fields. Reading is const and
/// thread-safe. A custom data set overrides size, fields and do_example, which receives a validated index; for images
/// with labels derive from ClassificationDataset instead.
class DECLIVITY_API Dataset {
  public:
    Dataset() = default;
    virtual ~Dataset();

    /// Number of examples.
    [[nodiscard]] virtual std::int64_t size() const = 0;
    /// Fields of each example, in order; constant for the lifetime of the data set.
    [[nodiscard]] virtual std::vector<Field> fields() const = 0;
    /// Field of the given name. @throws ValueError listing the available names if there is none
    [[nodiscard]] Field field(std::string_view name) const;
    /// Returns a copy of an example.
    /// @throws ValueError for an index out of range; ShapeError, TypeError and ValueError naming field and example if
    /// the example does not match fields()
    [[nodiscard]] Example example(std::int64_t index) const;

  protected:
    Dataset(const Dataset&) = default;
    Dataset(Dataset&&) = default;
    Dataset& operator=(const Dataset&) = default;
    Dataset& operator=(Dataset&&) = default;

    /// One output buffer for each field, of the size given by the field's type and shape.
    using FieldBuffers = std::span<const std::span<std::byte>>;
    using Places [[deprecated("FieldBuffers")]] = FieldBuffers;
    /// do_example and do_read of a wrapped data set, for subclasses. Indices are not checked.
    static std::vector<io::HostArray> example_of(const Dataset& other, std::int64_t index) {
        return other.do_example(index);
    }
    static void read_of(const Dataset& other, std::int64_t index, FieldBuffers fields) { other.do_read(index, fields); }

  private:
    friend class Loader;
    /// Returns the tensors of an example, in the order of the fields.
    [[nodiscard]] virtual std::vector<io::HostArray> do_example(std::int64_t index) const = 0;
    /// Writes an example directly into the memory of a batch; an optimisation that is used only if every field has a
    /// fixed shape. The default copies the result of do_example.
    virtual void do_read(std::int64_t index, FieldBuffers fields) const;
};

/// Features of one shape with a class label. Two fields: "image" if shape() has three axes (channels, height, width),
/// otherwise "features", f32; and "label", i64 of shape []. A custom data set overrides size, shape, classes,
/// do_features and do_label.
class DECLIVITY_API ClassificationDataset : public Dataset {
  public:
    ~ClassificationDataset() override;

    /// Shape of the features of one example; images are C,H,W with values from 0 to 1.
    [[nodiscard]] virtual Shape shape() const = 0;
    /// Number of classes; labels are 0 .. classes() - 1.
    [[nodiscard]] virtual std::int64_t classes() const = 0;
    /// One name for each class; "0", "1", ... by default.
    [[nodiscard]] virtual std::vector<std::string> class_names() const;
    [[nodiscard]] std::vector<Field> fields() const final;

    /// Writes the features of an example, row-major.
    /// @throws ValueError for an index out of range; ShapeError unless `features` has shape().numel() elements
    void read(std::int64_t index, std::span<float> features) const;
    /// Label of an example. @throws ValueError for an index out of range
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
    void do_read(std::int64_t index, FieldBuffers fields) const final;
};

/// Features and labels in memory, with features stored as floats or bytes. A byte b reads as b / 255.
class DECLIVITY_API InMemoryDataset : public ClassificationDataset {
  public:
    /// @param shape of one example
    /// @param values features of all examples, concatenated: labels.size() * shape.numel() elements
    /// @param labels 0 .. classes - 1
    /// @param class_names empty, or one for each class
    /// @throws ShapeError if the numbers of values, labels and names do not match; ValueError for a label out of range
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

/// Arrays of any types with a common first axis; example i consists of element i of each:
///
///     data::TensorDataset set({{"image", images}, {"mask", masks}});  // io::HostArray (N, C, H, W) and (N, H, W)
class DECLIVITY_API TensorDataset : public Dataset {
  public:
    /// @throws ShapeError naming the field unless all arrays have the same size of the first axis; ValueError for no
    /// arrays or a duplicate name
    explicit TensorDataset(std::vector<std::pair<std::string, io::HostArray>> arrays);
    ~TensorDataset() override;

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] std::vector<Field> fields() const override { return fields_; }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FieldBuffers fields) const override;
    [[nodiscard]] std::span<const std::byte> part(std::size_t field, std::int64_t index) const;

    std::vector<Field> fields_;
    std::vector<io::HostArray> arrays_;
    std::int64_t size_ = 0;
};

/// Examples computed from their index by a function, such as one that reads files. The function is called from several
/// threads concurrently.
class DECLIVITY_API FunctionDataset : public Dataset {
  public:
    using Read = std::function<std::vector<io::HostArray>(std::int64_t index)>;
    /// @param fields returned by the function, in order
    /// @throws ValueError for a negative size, no fields, a duplicate name, or an empty function
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

/// Selected examples of another data set, in the given order; an index may occur several times.
class DECLIVITY_API Subset : public Dataset {
  public:
    /// @throws ValueError if `whole` is null or an index is out of range
    Subset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
    /// The examples first .. last - 1.
    Subset(std::shared_ptr<const Dataset> whole, std::int64_t first, std::int64_t last);
    ~Subset() override;

    [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
    [[nodiscard]] std::vector<Field> fields() const override { return whole_->fields(); }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FieldBuffers fields) const override;

    std::shared_ptr<const Dataset> whole_;
    std::vector<std::int64_t> indices_;
};

/// Concatenation of several data sets.
class DECLIVITY_API ConcatDataset : public Dataset {
  public:
    /// A field whose shape differs between the parts has no fixed shape.
    /// @throws ValueError for no parts, a null part, or parts whose fields differ in name or number; TypeError if their
    /// types differ
    explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);
    ~ConcatDataset() override;

    [[nodiscard]] std::int64_t size() const override { return ends_.back(); }
    [[nodiscard]] std::vector<Field> fields() const override { return fields_; }

  private:
    [[nodiscard]] std::vector<io::HostArray> do_example(std::int64_t index) const override;
    void do_read(std::int64_t index, FieldBuffers fields) const override;
    /// The part that contains an example, and the index within that part.
    [[nodiscard]] std::pair<const Dataset&, std::int64_t> find(std::int64_t index) const;

    std::vector<std::shared_ptr<const Dataset>> parts_;
    std::vector<std::int64_t> ends_;
    std::vector<Field> fields_;
};

/// Subset of the first `count` examples, or of all if there are fewer.
/// @throws ValueError if `count` is negative or `whole` is null
DECLIVITY_API std::shared_ptr<const Dataset> take(std::shared_ptr<const Dataset> whole, std::int64_t count);

/// @}

}  // namespace declivity::data
