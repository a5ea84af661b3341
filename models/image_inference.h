// Inference of the image models: finds the most probable classes of new images.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "models/image_data.h"
#include "models/image_training.h"
#include "models/model.h"

namespace paceline::models {

/// How an image model classifies images.
struct ImageClassifier {
  ImageUse use;
  EvaluateWith with = EvaluateWith::kVariables;
  std::map<std::string, std::string> modules = {};  // for PredictorOptions::modules
  /// Builds the graph for batches of `batch` images.
  std::function<Classifier(Graph&, std::int64_t classes, std::int64_t batch)> build;
};

/// The result of Model::inference for an image model.
Inference image_inference();
/// Does Model::infer for an image model. A row has the name of the file and, for each of the `top`
/// most probable classes, name and probability of the class. A class has its number as its name
/// where the checkpoint tells no names.
void infer_images(const InferenceRequest& request, const ImageClassifier& model);

}  // namespace paceline::models
