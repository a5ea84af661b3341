// The parts of a training that the image models share: the batches, and evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/image_data.h"
#include "models/model.h"
#include "paceline/evaluator.h"
#include "paceline/graph.h"
#include "paceline/session.h"

namespace paceline::models {

/// The batches of a training, and the images for evaluation.
class ImageInput {
 public:
  /// Opens the data, and writes the picture that --save-images asks for. Throws what image_data
  /// throws.
  ImageInput(const Settings& settings, const ImageUse& use, const Cluster& cluster);

  /// The classes that labels count.
  std::int64_t classes() const { return data_.classes; }
  /// Fills the inputs of a step: float32 (N,3,H,W) and int32 (N).
  std::function<void(Feed&)> feed(Value images, Value labels);
  /// Returns the function for SessionOptions::input. Call it after feed().
  std::function<InputReport()> report() const { return report_; }
  /// Returns one pass over the images for evaluation; null: there are none.
  const Pipeline* evaluation() const { return data_.evaluation ? &*data_.evaluation : nullptr; }
  /// The number of images of all workers' training data.
  std::int64_t images() const;
  /// Returns one pass over the training images, without distortions and batches.
  const Pipeline& undistorted() const { return data_.undistorted; }
  /// True when a task of its own evaluates the checkpoints, and the chief nothing.
  bool has_evaluator() const { return has_evaluator_; }
  /// It is meant for SessionOptions::data_names.
  const std::map<std::string, std::vector<std::string>>& names() const { return data_.names; }
  /// Lines for the user about the images (ImageData::notes).
  const std::vector<std::string>& notes() const { return data_.notes; }

 private:
  const ImageData data_;
  const bool has_evaluator_;
  std::function<InputReport()> report_;
};

/// Throws what ImageInput throws, before any task is started.
void check_image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster);

/// The classifier of an evaluation graph, for batches of N images.
struct Classifier {
  Value images;  // float32 (N,3,H,W)
  Value logits;  // (N, classes)
};

/// A classifier as its users see it: "images" float32 (batch,3,H,W) → "probabilities"
/// (batch,classes). `build` adds the classifier to a graph, for batches of one size.
OnnxModel classifier_inference(std::function<Classifier(Graph&, std::int64_t batch)> build);

/// Evaluates each image of the pipeline once, also those of a last batch that is filled up: the
/// mean cross-entropy, and the share of images whose label has the largest logit.
Evaluation score_images(Evaluator& evaluator, const Classifier& classifier, const Pipeline& images);

/// The names of the numbers that evaluations give to Session::summarise.
std::vector<std::string> image_numbers();

/// The setting "evaluate_every": the seconds between two evaluations beside training.
Setting<std::int64_t> evaluation_interval_setting();
/// Returns the interval that the setting gives; `at_end` is for a model that by default evaluates
/// only at the end.
Interval evaluation_interval(const Settings& settings, bool at_end = false);

/// Evaluations of a model while it is trained and at the end, by the chief.
class ImageEvaluation {
 public:
  /// `with` says whether the classifier has the variables' values or their moving averages. The
  /// classifier's graph must outlive this.
  ImageEvaluation(const Classifier& classifier, const Pipeline& images, EvaluateWith with);

  /// Evaluates beside training at that interval, and prints loss, precision and best precision.
  void add_to(Session& session, Interval every) const;
  /// Evaluates once more, and prints the last line: "precision 0.7312, best 0.7402 at step 6000".
  void finish(Session& session) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Model::evaluate for a training whose variables are those of the classifier.
Evaluation evaluate_checkpoint(const Training& training, const Classifier& classifier,
                               const ImageInput& input, EvaluateWith with, const RunOptions& run);

/// Runs the session to its end, with evaluations at this interval and at the end where there are
/// images for them.
void train_images(Session& session, const std::function<void(Feed&)>& feed, const ImageInput& input,
                  const Classifier& classifier, EvaluateWith with, Interval every);

}  // namespace paceline::models
