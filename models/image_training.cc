#include "models/image_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <thread>

#include "paceline/error.h"
#include "paceline/input.h"
#include "paceline/ops.h"

namespace paceline::models {
namespace {

double cross_entropy(std::span<const float> logits, std::int32_t label) {
  const double largest = double(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - largest);
  return std::log(sum) + largest - double(logits[std::size_t(label)]);
}

// True if the label has the largest logit. Among equal logits, the first counts as the largest, as
// in arg_max.
bool is_right(std::span<const float> logits, std::int32_t label) {
  return std::ranges::max_element(logits) - logits.begin() == label;
}

}  // namespace

ImageInput::ImageInput(const Settings& settings, const ImageUse& use, const Cluster& cluster)
    : data_(image_data(settings, use, cluster)), has_evaluator_(cluster.launch.evaluator) {
  save_images(settings, data_, cluster);
}

std::function<void(Feed&)> ImageInput::feed(Value images, Value labels) {
  const PipelineFeed batches(data_.training, images, labels);
  report_ = [batches] { return batches.report(); };
  return batches;
}

std::int64_t ImageInput::images() const {
  const std::vector<std::int64_t> files = data_.undistorted.source().files();
  return std::accumulate(files.begin(), files.end(), std::int64_t{0});
}

void check_image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster) {
  const bool ps =
      cluster.process == Cluster::Process::kTask && cluster.task.role == TaskId::Role::kPs;
  const ImageSettings own;
  const bool named = !settings[own.data].empty() || !settings[own.eval_data].empty();
  if (!ps && named) image_data(settings, use, cluster);
}

OnnxModel classifier_inference(std::function<Classifier(Graph&, std::int64_t batch)> build) {
  return {.build = [build = std::move(build)](std::span<const std::int64_t> sizes) {
    InferenceGraph made{.graph = std::make_unique<Graph>()};
    const Classifier classifier = build(*made.graph, sizes[0]);
    made.inputs = {{"images", classifier.images}};
    made.outputs = {{"probabilities", softmax(classifier.logits)}};
    return made;
  }};
}

Evaluation score_images(Evaluator& evaluator, const Classifier& classifier,
                        const Pipeline& images) {
  Evaluation score;
  std::int64_t count = 0;
  PipelineReader reader(images);
  const Value fetches[] = {classifier.logits};
  while (const InputBatch* const batch = reader.next()) {
    const TensorView logits = evaluator.evaluate_in_place(
        classifier.logits.graph(), fetches,
        [&](Feed& feed) { feed.set(classifier.images, batch->values); })[0];
    const std::span<const float> all(logits.as<float>(), std::size_t(logits.shape.elements()));
    const std::size_t classes = all.size() / batch->weights.data<float>().size();
    for (std::size_t i = 0; i < batch->weights.data<float>().size(); ++i) {
      if (batch->weights.data<float>()[i] == 0) continue;
      const std::span<const float> its = all.subspan(i * classes, classes);
      const std::int32_t label = batch->labels.data<std::int32_t>()[i];
      score.loss += cross_entropy(its, label);
      score.precision += is_right(its, label) ? 1 : 0;
      ++count;
    }
  }
  if (count == 0) return score;
  score.loss /= double(count);
  score.precision /= double(count);
  return score;
}

struct ImageEvaluation::State {
  Classifier classifier;
  Pipeline images;
  EvaluateWith with;
  Evaluation last = {};
  double best = -1;  // the best precision; −1: none yet
  std::int64_t best_at = 0;

  void tell(Session& session) const {
    const double numbers[] = {last.loss, last.precision};
    const std::vector<std::string> names = image_numbers();
    for (std::size_t i = 0; i < names.size(); ++i) session.summarise(names[i], numbers[i]);
  }
  void note(std::int64_t global_step) {
    if (last.precision <= best) return;
    best = last.precision;
    best_at = global_step;
  }
};

ImageEvaluation::ImageEvaluation(const Classifier& classifier, const Pipeline& images,
                                 EvaluateWith with)
    : state_(std::make_shared<State>(State{classifier, images, with})) {}

void ImageEvaluation::add_to(Session& session, Interval every) const {
  if (every.never()) return;
  const auto evaluate = [state = state_](Evaluator& evaluator) {
    state->last = score_images(evaluator, state->classifier, state->images);
  };
  const auto done = [state = state_](Session& trains, const StepResult& at) {
    state->note(at.global_step);
    state->tell(trains);
    trains.print(fmt::format("evaluated step {}: loss {:.4f}, precision {:.4f}, best {:.4f}",
                             at.global_step, state->last.loss, state->last.precision, state->best));
    return true;
  };
  session.add(EvaluateBeside(every, evaluate, done, 1, state_->with));
}

void ImageEvaluation::finish(Session& session) const {
  if (!session.cluster().is_chief()) return;
  Evaluator evaluator(session);
  evaluator.take_values(state_->with);
  state_->last = score_images(evaluator, state_->classifier, state_->images);
  state_->note(evaluator.global_step());
  state_->tell(session);
  session.print(fmt::format("precision {:.4f}, best {:.4f} at step {}", state_->last.precision,
                            state_->best, state_->best_at));
}

std::vector<std::string> image_numbers() { return {"loss/valid", "precision/valid"}; }

Setting<std::int64_t> evaluation_interval_setting() {
  return {.name = "evaluate_every",
          .value = 60,
          .help = "Seconds between two evaluations beside training; 0: only at the end",
          .least = 0,
          .most = 1e9};
}

Interval evaluation_interval(const Settings& settings, bool at_end) {
  const Setting<std::int64_t> every = evaluation_interval_setting();
  if (at_end && !settings.given(every)) return {};
  return std::chrono::duration<double>(settings[every]);
}

Evaluation evaluate_checkpoint(const Training& training, const Classifier& classifier,
                               const ImageInput& input, EvaluateWith with, const RunOptions& run) {
  if (input.evaluation() == nullptr) {
    throw Error(ErrorCode::kUsage,
                "--data or --eval-data is missing: there are no images to evaluate with");
  }
  Cluster alone;
  alone.launch.launched = true;  // so that the run's report.json is not overwritten
  Session session(training, alone, run, {.data_names = input.names()});
  Evaluator evaluator(session, 0);
  evaluator.take_values(with);
  Evaluation score = score_images(evaluator, classifier, *input.evaluation());
  score.global_step = evaluator.global_step();
  return score;
}

void train_images(Session& session, const std::function<void(Feed&)>& feed, const ImageInput& input,
                  const Classifier& classifier, EvaluateWith with, Interval every) {
  std::optional<ImageEvaluation> evaluation;
  if (input.evaluation() != nullptr && !input.has_evaluator()) {
    evaluation.emplace(classifier, *input.evaluation(), with);
    evaluation->add_to(session, every);
  }
  if (session.cluster().is_chief()) {
    for (const std::string& note : input.notes()) session.print(note);
  }
  while (session.run(feed)) {
  }
  if (evaluation) evaluation->finish(session);
}

}  // namespace paceline::models
