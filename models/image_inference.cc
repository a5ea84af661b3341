#include "models/image_inference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <span>

#include "paceline/error.h"
#include "paceline/ops.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kBatch = 100;

// Returns the names of the classes. A checkpoint that was trained on CIFAR-10's binary files may
// have no names; then the classes are named by their numbers.
std::vector<std::string> classes_of(const SavedModel& saved) {
  if (const auto known = saved.data_names.find("classes"); known != saved.data_names.end()) {
    return known->second;
  }
  std::vector<std::string> numbers;
  for (int label = 0; label < RecordFormat{}.classes; ++label) {
    numbers.push_back(fmt::format("{}", label));
  }
  return numbers;
}

void check_steps(const SavedModel& saved, const ImageUse& use) {
  const auto known = saved.data_names.find(kImageSteps);
  const std::vector<std::string> steps = image_steps(use);
  if (known == saved.data_names.end() || known->second == steps) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("{} was evaluated on images that were prepared in another way ({}) than "
                          "the model's are here ({})",
                          saved.path, fmt::join(known->second, "; "), fmt::join(steps, "; ")));
}

// Returns the `count` most probable classes. Classes of the same probability keep their order.
std::vector<std::size_t> most_probable(std::span<const float> probabilities, std::size_t count) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  order.resize(count);
  return order;
}

InferenceRow row_of(const std::string& file, std::span<const float> probabilities,
                    const std::vector<std::string>& classes, std::int64_t top) {
  InferenceRow row = {{"file", file}};
  for (const std::size_t label : most_probable(probabilities, std::size_t(top))) {
    const std::string number = row.size() == 1 ? "" : fmt::format("{}", 1 + row.size() / 2);
    row.emplace_back("class" + number, classes[label]);
    row.emplace_back("probability" + number, double(probabilities[label]));
  }
  return row;
}

}  // namespace

Inference image_inference() {
  return {.about =
              "Says of each image the class that it most probably shows, and with what "
              "probability. Images are prepared as those of the run's evaluations.",
          .data =
              "The images: a JPEG, PNG or WebP file, a folder of such files (at any depth), or "
              "CIFAR-10's binary files (a file, a quoted pattern, a folder)",
          .top = true};
}

void infer_images(const InferenceRequest& request, const ImageClassifier& model) {
  const std::vector<std::string> classes = classes_of(request.saved);
  if (request.top > std::int64_t(classes.size())) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--top {}: the model knows {} classes", request.top, classes.size()));
  }
  check_steps(request.saved, model.use);
  const NewImages data = new_images(request.data, model.use, kBatch);
  if (!data.left_out.empty()) {
    std::fputs(fmt::format("left out of {}: {}\n", request.data, data.left_out).c_str(), stderr);
  }
  Graph graph;
  const Classifier classifier = model.build(graph, std::int64_t(classes.size()), data.batch);
  const Predictor predictor(graph, {softmax(classifier.logits)}, request.saved.path,
                            {.with = model.with, .modules = model.modules});
  const RecordSource& source = data.images.source();
  std::int64_t index = 0;
  PipelineReader reader(data.images);
  while (const InputBatch* const batch = reader.next()) {
    const Tensor computed = predictor.predict({{classifier.images, batch->values}})[0];
    const std::span<const float> all = computed.data<float>();
    for (std::int64_t i = 0; i < batch->records; ++i, ++index) {
      request.give(row_of(source.name(index),
                          all.subspan(std::size_t(i) * classes.size(), classes.size()), classes,
                          request.top));
    }
  }
}

}  // namespace paceline::models
