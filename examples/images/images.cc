// Learns the classes of images. photos/train and photos/test have a folder for each class:
//   ./images --data photos --out run --keep-best loss/test
//   ./images infer --out run:best --data new
#include <paceline/paceline.h>

#include <algorithm>
#include <optional>
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
    const Value wanted[] = {model.loss, model.accuracy};
    double all = 0, loss = 0, right = 0;
    for (std::int64_t i = 0; i < test.batches(); ++i) {
      double n = 0;
      const std::vector<Tensor> means =
          session.evaluate(graph, wanted, [&](Feed& feed) { n = double(test.fill(feed)); });
      all += n;
      loss += n * means[0].item<float>();
      right += n * means[1].item<float>();
    }
    session.summarise("loss/test", loss / all);
    session.print("step " + std::to_string(at.global_step) + ": test loss " +
                  std::to_string(loss / all) + ", accuracy " + std::to_string(right / all));
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

// Gives the most probable class of each image at --data.
void infer(const InferenceRequest& request, const Settings&) {
  const std::vector<std::string>& classes = request.saved.data_names.at("classes");
  Graph graph;
  const Model model = build(graph, 0, std::int64_t(classes.size()));
  const Predictor predictor(graph, {model.probabilities}, request.saved.path);
  const auto images = image_files(request.data);
  PipelineReader reader(batches(decoded(images), 100, false));
  std::int64_t image = 0;
  while (const InputBatch* batch = reader.next()) {
    const Tensor found = predictor.predict({{model.images, batch->values}})[0];
    for (std::int64_t row = 0; row < batch->rows; ++row) {
      const auto of_image =
          found.data<float>().subspan(std::size_t(row) * classes.size(), classes.size());
      const auto best = std::ranges::max_element(of_image);
      request.give({{"file", images->name(image++)},
                    {"class", classes[std::size_t(best - of_image.begin())]},
                    {"probability", double(*best)}});
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
