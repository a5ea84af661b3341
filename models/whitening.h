// The filters of a first layer that whitens small patches of images. Over the images that the
// filters were made from, the outputs of the first half of them are uncorrelated, with a mean
// square of nearly 1. The other half are the same filters negated.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "paceline/data.h"
#include "paceline/tensor.h"

namespace paceline::models {

/// The eigenvalues of a symmetric matrix, and an eigenvector of length 1 for each of them.
struct Eigensystem {
  std::vector<double> values;
  std::vector<std::vector<double>> vectors;
};
/// Decomposes a symmetric n × n matrix, row-major, by Jacobi's rotations.
Eigensystem eigensystem(std::vector<double> matrix, std::size_t n);

constexpr std::int64_t kPatch = 2;  // height and width of a patch

/// The number of filters for images of `channels` channels: two for each value of a patch.
constexpr std::int64_t whitening_filter_count(std::int64_t channels) {
  return 2 * channels * kPatch * kPatch;
}

/// Returns the filters (2·C·4,C,2,2) for images (N,C,H,W): the eigenvectors of the mean of p·pᵀ
/// over all patches p of 2 × 2 pixels, each divided by √(eigenvalue + 5e-4), then the same filters
/// negated.
Tensor whitening_filters(const Tensor& images);
/// Returns the filters for the first batch of a pipeline. Throws kInvalidArgument when there is
/// none.
Tensor whitening_filters(const Pipeline& images);

}  // namespace paceline::models
