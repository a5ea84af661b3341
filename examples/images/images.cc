// Learns the classes of images. photos/train and photos/test have a folder for each class:
//   ./images --data photos --out run --keep-best loss/test
//   ./images infer --out run:best --data new
#include <paceline/paceline.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace paceline;

constexpr std::int64_t kPixels = 32;  // height and width of the images that the model sees
const auto kBatch = batch_setting(32), kEpochs = epochs_setting(20);
const auto kData = data_setting("photos");
const Setting<double> kRate = {
    .name = "learning_rate", .value = 3e-3, .help = "Adam's learning rate", .least = 0, .most = 1};

struct Model {
  Value images, labels;                 // (N,3,32,32) float32, (N) int32
  Value probabilities, loss, accuracy;  // (N,classes), scalars
};

// Builds the graph. `usual` is the usual number of images in a batch.
Model build(Graph& graph, std::int64_t usual, std::int64_t classes) {
  const std::int64_t n = graph.open("images", usual);
  Model model;
  model.images = graph.input("images", {n, 3, kPixels, kPixels});
  model.labels = graph.input("labels", {n}, DType::kInt32);
  Value x = model.images;
  for (const std::int64_t channels : {16, 32, 64}) {
    const auto scope = graph.scope("layer" + std::to_string(channels));
    x = max_pool2d(relu(batch_norm(conv2d(x, channels, 3, "conv"), "norm")));
  }
  const Value logits = dense(dropout(reshape(x, {n, -1}), 0.8), classes, "logits");
  model.probabilities = softmax(logits);
  model.loss = reduce_mean(softmax_cross_entropy(logits, model.labels));
  model.accuracy = top_k_accuracy(logits, model.labels, 1);
  return model;
}

Pipeline decoded(std::shared_ptr<const RecordSource> images) {
  return Pipeline(std::move(images)).decode({.height = kPixels, .width = kPixels}).cache(1 << 28);
}

// Makes batches. If `random` is true, as for training, images are shifted and mirrored at random.
Pipeline batches(Pipeline images, std::int64_t batch, bool random) {
  return images
      .distort({.pad = random ? 4 : 0, .height = kPixels, .width = kPixels, .random = random})
      .batch(batch, LastBatch::kShort);
}

void train(const Cluster& cluster, const RunOptions& run, const Settings& settings) {
  const auto images = image_folder(settings[kData] + "/train");
  const std::vector<std::string> classes = images->classes();
  const std::int64_t batch = settings[kBatch];
  const bool by_epochs = !run.steps && !run.seconds;  // without --steps or --seconds
  const Pipeline own = decoded(images)
                           .shard(cluster.task.index, cluster.workers())
                           .shuffle(10'000)
                           .repeat(by_epochs ? std::optional(settings[kEpochs]) : std::nullopt);
  const auto test_images = image_folder(settings[kData] + "/test", classes);

  Graph graph;
  const Model model = build(graph, batch, std::int64_t(classes.size()));
  PipelineFeed data(batches(own, batch, true), model.images, model.labels);
  PipelineFeed test(batches(decoded(test_images), 100, false), model.images, model.labels);
  const auto evaluate = [&](Session& session, const StepResult& at) {
    const std::vector<double> means = means_over(session, {model.loss, model.accuracy}, test);
    session.summarise("loss/test", means[0]);
    session.print("step " + std::to_string(at.global_step) + ": test loss " +
                  std::to_string(means[0]) + ", accuracy " + std::to_string(means[1]));
    return true;
  };
  Session session(minimize(model.loss, Adam{.learning_rate = float(settings[kRate])}), cluster, run,
                  {.unit = "images",
                   .model = "images",
                   .input = [&] { return data.report(); },
                   .data_names = {{"classes", classes}}});
  session.print(images_in_words(*images, std::int64_t(classes.size())));
  session.add(Progress()).add(EvaluateEvery(100, evaluate));
  session.run(data);
}

// Gives the most probable classes of an image, a row each: one, or as many as --top says.
void give(const InferenceRequest& request, const std::string& image,
          std::span<const float> probabilities) {
  const std::vector<std::string>& classes = request.saved.names("classes");
  std::vector<std::size_t> order(classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, std::greater(), [&](std::size_t each) { return probabilities[each]; });
  order.resize(std::min(order.size(), std::size_t(request.top)));
  for (const std::size_t each : order) {
    request.give(
        {{"file", image}, {"class", classes[each]}, {"probability", double(probabilities[each])}});
  }
}

void infer(const InferenceRequest& request, const Settings&) {
  const std::size_t classes = request.saved.names("classes").size();
  Graph graph;
  const Model model = build(graph, 0, std::int64_t(classes));
  const Predictor predictor(graph, {model.probabilities}, request.saved.path);
  const auto images = image_files(request.data);
  PipelineReader reader(batches(decoded(images), 100, false));
  std::int64_t image = 0;
  while (const InputBatch* batch = reader.next()) {
    const Tensor found = predictor.predict({{model.images, batch->values}})[0];
    for (std::int64_t row = 0; row < batch->rows; ++row) {
      give(request, images->name(image++),
           found.data<float>().subspan(std::size_t(row) * classes, classes));
    }
  }
}

int main(int argc, char** argv) {
  return run_program(argc, argv,
                     {.about = "Learns the classes of the images in a folder.",
                      .settings = {kBatch, kEpochs, kData, kRate},
                      .infer = infer},
                     train);
}
