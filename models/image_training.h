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

  /// The number of classes.
  std::int64_t classes() const { return data_.classes; }
  /// Returns the function that fills the inputs of a step: images float32 (N,3,H,W) and labels
  /// int32 (N).
  std::function<void(Feed&)> feed(Value images, Value labels);
  /// Returns the function for SessionOptions::input. Call it after feed().
  std::function<InputReport()> report() const { return report_; }
  /// Returns one pass over the images for evaluation; null when there are none.
  const Pipeline* evaluation() const { return data_.evaluation ? &*data_.evaluation : nullptr; }
  /// The number of training images of all workers together.
  std::int64_t images() const;
  /// Returns one pass over the training images, distorted as for evaluation and without batches.
  const Pipeline& undistorted() const { return data_.undistorted; }
  /// True when a separate task evaluates the checkpoints, so that the chief evaluates nothing.
  bool has_evaluator() const { return has_evaluator_; }
  /// The names for SessionOptions::data_names.
  const std::map<std::string, std::vector<std::string>>& names() const { return data_.names; }
  /// Lines for the user about the images (ImageData::notes).
  const std::vector<std::string>& notes() const { return data_.notes; }

 private:
  const ImageData data_;
  const bool has_evaluator_;
  std::function<InputReport()> report_;
};

/// Throws what ImageInput throws, before any task is started. Checks nothing in a ps task, or when
/// no data is named.
void check_image_data(const Settings& settings, const ImageUse& use, const Cluster& cluster);

/// The classifier of an evaluation graph, for batches of N images.
struct Classifier {
  Value images;  // float32 (N,3,H,W)
  Value logits;  // (N, classes)
};

/// Returns the model for ONNX: "images" float32 (batch,3,H,W) → "probabilities" (batch,classes).
/// `build` adds the classifier to a graph, for batches of `batch` images.
OnnxModel classifier_inference(std::function<Classifier(Graph&, std::int64_t batch)> build);

/// Evaluates each image of the pipeline once; rows that only fill up the last batch do not count.
/// Returns the mean cross-entropy, and the share of images whose label has the largest logit.
Evaluation score_images(Evaluator& evaluator, const Classifier& classifier, const Pipeline& images);

/// The names of the numbers that evaluations give to Session::summarise.
std::vector<std::string> image_numbers();

/// The setting "evaluate_every": the seconds between two evaluations beside training.
Setting<std::int64_t> evaluation_interval_setting();
/// Returns the interval that the setting gives. With `at_end`, the default is to evaluate only at
/// the end.
Interval evaluation_interval(const Settings& settings, bool at_end = false);

/// The chief's evaluations of a model: while it is trained, and at the end.
class ImageEvaluation {
 public:
  /// `with` says whether the classifier takes the variables or their moving averages. The
  /// classifier's graph must outlive the ImageEvaluation.
  ImageEvaluation(const Classifier& classifier, const Pipeline& images, EvaluateWith with);

  /// Adds a hook that evaluates beside training at the interval `every`, and prints loss, precision
  /// and best precision.
  void add_to(Session& session, Interval every) const;
  /// Evaluates once more, and prints the last line: "precision 0.7312, best 0.7402 at step 6000".
  void finish(Session& session) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Does Model::evaluate for a training that has the variables of the classifier. Throws kUsage when
/// there are no images for evaluation.
Evaluation evaluate_checkpoint(const Training& training, const Classifier& classifier,
                               const ImageInput& input, EvaluateWith with, const RunOptions& run);

/// Runs the session to its end. If there are images for evaluation and no other task evaluates, the
/// chief evaluates at the interval `every` and at the end.
void train_images(Session& session, const std::function<void(Feed&)>& feed, const ImageInput& input,
                  const Classifier& classifier, EvaluateWith with, Interval every);

}  // namespace paceline::models
