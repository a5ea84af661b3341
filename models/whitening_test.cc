#include "models/whitening.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/testing/standardised_images.h"

namespace paceline::models {
namespace {

TEST(Eigensystem, SolvesItsMatrix) {
  constexpr std::size_t kSize = 7;
  std::vector<double> matrix(kSize * kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    for (std::size_t j = 0; j < kSize; ++j) {
      matrix[i * kSize + j] = std::sin(double(i * j)) + std::cos(double(i + j));
    }
  }
  const Eigensystem system = eigensystem(matrix, kSize);
  for (std::size_t e = 0; e < kSize; ++e) {
    const std::vector<double>& vector = system.vectors[e];
    double length = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      double product = 0;
      for (std::size_t j = 0; j < kSize; ++j) product += matrix[i * kSize + j] * vector[j];
      EXPECT_NEAR(product, system.values[e] * vector[i], 1e-10);
      length += vector[i] * vector[i];
    }
    EXPECT_NEAR(length, 1, 1e-10);
  }
}

// Returns the output of filter `filter` for the patch of image i whose upper left corner is at
// (y,x).
double output(const Tensor& filters, std::int64_t filter, const Tensor& images, std::int64_t i,
              std::int64_t y, std::int64_t x) {
  const std::int64_t extent = images.shape()[2];
  double sum = 0;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t dy = 0; dy < 2; ++dy) {
      for (std::int64_t dx = 0; dx < 2; ++dx) {
        const std::int64_t weight = ((filter * 3 + c) * 2 + dy) * 2 + dx;
        const std::int64_t pixel = ((i * 3 + c) * extent + y + dy) * extent + x + dx;
        sum += double(filters.data<float>()[std::size_t(weight)]) *
               double(images.data<float>()[std::size_t(pixel)]);
      }
    }
  }
  return sum;
}

TEST(WhiteningFilters, MakeUncorrelatedOutputsOfVarianceOne) {
  const Tensor images = standardised_images(30, 8, 10, 1).images;
  const Tensor filters = whitening_filters(images);
  ASSERT_EQ(filters.shape(), (Shape{24, 3, 2, 2}));
  for (std::int64_t a = 0; a < 12; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      double mean = 0;
      for (std::int64_t at = 0; at < 30 * 49; ++at) {
        const std::int64_t i = at / 49, y = at % 49 / 7, x = at % 7;
        mean += output(filters, a, images, i, y, x) * output(filters, b, images, i, y, x) / 1470;
      }
      EXPECT_NEAR(mean, a == b ? 1 : 0, 0.01) << a << " and " << b;
    }
    EXPECT_EQ(output(filters, a, images, 3, 1, 2), -output(filters, a + 12, images, 3, 1, 2));
  }
}

}  // namespace
}  // namespace paceline::models
