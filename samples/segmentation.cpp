// Semantic segmentation: a network predicts the class of each pixel, and whether it is on an outline.
#include <cmath>
#include <cstdio>

#include <declivity/declivity.hpp>

using namespace declivity;

namespace {

constexpr std::int64_t kSide = 24, kClasses = 3;

/// A disc (class 1) and a square (class 2) in noise; targets are the class map and the outline mask.
data::FunctionDataset scenes(std::int64_t count, std::uint64_t seed) {
    const std::vector<data::Field> fields = {{.name = "image", .shape = Shape{1, kSide, kSide}},
                                             {.name = "mask", .dtype = DType::i64, .shape = Shape{kSide, kSide}},
                                             {.name = "outline", .shape = Shape{kSide, kSide}}};
    return data::FunctionDataset(count, fields, [seed](std::int64_t index) {
        data::Random random(seed, 0, static_cast<std::uint64_t>(index), data::Purpose::user);
        std::vector<float> image, outline;
        std::vector<std::int64_t> mask;
        const float size = random.uniform(3, 5), left = random.uniform(5, 8), right = random.uniform(16, 19);
        const float upper = random.uniform(5, 19), lower = random.uniform(5, 19);
        for (std::int64_t i = 0; i < kSide * kSide; ++i) {
            const auto y = static_cast<float>(i / kSide), x = static_cast<float>(i % kSide);
            const float disc = std::hypot(x - left, y - upper) - size;
            const float square = std::max(std::abs(x - right), std::abs(y - lower)) - size;
            mask.push_back(disc < 0 ? 1 : square < 0 ? 2 : 0);
            outline.push_back(std::min(std::abs(disc), std::abs(square)) < 1 ? 1.0F : 0.0F);
            image.push_back((mask.back() > 0 ? 0.8F : 0.2F) + 0.2F * random.normal());
        }
        return std::vector{io::HostArray::of({1, kSide, kSide}, image), io::HostArray::of({kSide, kSide}, mask),
                           io::HostArray::of({kSide, kSide}, outline)};
    });
}

/// Output channels (N, kClasses + 1, H, W): scores of the classes, then of the outline.
Tensor classes(const Tensor& output) { return slice(output, 1, 0, kClasses); }
Tensor outline(const Tensor& output) { return select(output, 1, kClasses); }

Tensor loss(const Tensor& output, const data::Batch& batch) {
    const Tensor scores = reshape(permute(classes(output), {0, 2, 3, 1}), {-1, kClasses});
    return cross_entropy(scores, reshape(batch["mask"], {-1})) + bce_with_logits(outline(output), batch["outline"]);
}

}  // namespace

int main() {
    manual_seed(1);
    const data::FunctionDataset train_set = scenes(400, 1), test_set = scenes(150, 2);

    nn::Sequential model(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2),
                         nn::Conv2d(16, 32, 5, {.padding = 2}), nn::BatchNorm2d(32), nn::ReLU(),
                         nn::ConvTranspose2d(32, 16, 2, {.stride = 2}), nn::ReLU(), nn::Conv2d(16, kClasses + 1, 1));
    optim::Adam optimizer(model.parameters(), {.lr = 0.01});

    const auto iou = std::make_shared<train::MeanIoU>(kClasses);
    const auto scores_and_mask = [](const Tensor& output, const data::Batch& batch) {
        return std::pair(classes(output), batch["mask"]);
    };
    train::Trainer trainer(model, optimizer, loss, {.metrics = {{"iou", iou, scores_and_mask}}});
    const auto rate = std::make_shared<train::LearningRate>(optim::cosine(5 * 40), train::LearningRate::Unit::step);
    trainer.fit(train_set, test_set, {.epochs = 5, .batch = 10, .callbacks = {rate}, .capture = true});

    const double mean = trainer.evaluate(test_set)["iou"];
    for (const double class_iou : iou->per_class()) std::printf("%.3f ", class_iou);
    std::printf("\nmean intersection over union: %.4f\n", mean);
    return mean > 0.8 ? 0 : 1;
}
