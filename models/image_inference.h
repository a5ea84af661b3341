// Inference of the image models: the classes of new images, with their probabilities.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "models/image_data.h"
#include "models/image_training.h"
#include "models/model.h"

namespace paceline::models {

/// An image model as it is used.
struct ImageClassifier {
  ImageUse use;
  EvaluateWith with = EvaluateWith::kVariables;
  std::map<std::string, std::string> modules = {};  // PredictorOptions'
  /// Builds the graph for batches of `batch` images.
  std::function<Classifier(Graph&, std::int64_t classes, std::int64_t batch)> build;
};

/// Model::inference of an image model.
Inference image_inference();
/// Model::infer of an image model. A row has the file, and for each of the `top` most probable
/// classes its name (its number, where the checkpoint knows no names) and its probability.
void infer_images(const InferenceRequest& request, const ImageClassifier& model);

}  // namespace paceline::models
