// Label smoothing of softmax_cross_entropy and its gradients.
#pragma once

#include <cstdint>

#include "paceline/graph.h"

namespace paceline {

/// The probabilities of the classes that a loss aims at.
struct WantedProbabilities {
  double of_label = 1;  // in addition to `of_each`
  double of_each = 0;   // of every class, the label's too

  /// Reads the attribute "smoothing"; a missing one means 0.
  static WantedProbabilities of(const Attributes& attributes, std::int64_t classes) {
    if (!attributes.has("smoothing")) return {};
    const double smoothing = attributes.get<double>("smoothing");
    return {1 - smoothing, smoothing / double(classes)};
  }
};

}  // namespace paceline
