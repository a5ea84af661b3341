#include "params/clip_scale.h"

#include <cmath>
#include <numeric>

namespace paceline {

double norm_of(std::span<const double> squares) {
  return float(std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0)));
}

float clip_scale_of(double norm, float clip_norm) {
  return norm > clip_norm ? float(clip_norm / norm) : 1.0f;
}

}  // namespace paceline
