#include "models/whitening.h"

#include <algorithm>
#include <cmath>

#include "paceline/error.h"

namespace paceline::models {
namespace {

constexpr double kSmallestVariance = 5e-4;
constexpr int kMostSweeps = 50;
// Rotations end when the squares of the elements off the diagonal are at most this share of the
// squares of all elements.
constexpr double kRotationEnd = 1e-24;

/// Makes a symmetric matrix diagonal by rotations, and so finds its eigenvectors.
class JacobiRotations {
 public:
  JacobiRotations(std::vector<double> matrix, std::size_t n)
      : matrix_(std::move(matrix)), vectors_(n * n), n_(n) {
    for (std::size_t i = 0; i < n; ++i) vectors_[i * n + i] = 1;
  }

  void run() {
    for (int sweep = 0; sweep < kMostSweeps && !diagonal(); ++sweep) {
      for (std::size_t p = 0; p < n_; ++p) {
        for (std::size_t q = p + 1; q < n_; ++q) rotate(p, q);
      }
    }
  }

  Eigensystem result() const {
    Eigensystem system;
    for (std::size_t i = 0; i < n_; ++i) {
      system.values.push_back(matrix_[i * n_ + i]);
      system.vectors.emplace_back();
      for (std::size_t k = 0; k < n_; ++k) system.vectors.back().push_back(vectors_[k * n_ + i]);
    }
    return system;
  }

 private:
  bool diagonal() const {
    double beside = 0, all = 0;
    for (std::size_t row = 0; row < n_; ++row) {
      for (std::size_t column = 0; column < n_; ++column) {
        const double square = matrix_[row * n_ + column] * matrix_[row * n_ + column];
        all += square;
        if (row != column) beside += square;
      }
    }
    return beside <= kRotationEnd * all;
  }

  // Rotates rows and columns p and q so that elements (p,q) and (q,p) become zero.
  void rotate(std::size_t p, std::size_t q) {
    const double apart = matrix_[p * n_ + q];
    if (apart == 0) return;
    const double theta = (matrix_[q * n_ + q] - matrix_[p * n_ + p]) / (2 * apart);
    const double t = std::copysign(1 / (std::abs(theta) + std::hypot(theta, 1.0)), theta);
    const double c = 1 / std::hypot(t, 1.0), s = t * c;
    for (std::size_t k = 0; k < n_; ++k) turn(matrix_[k * n_ + p], matrix_[k * n_ + q], c, s);
    for (std::size_t k = 0; k < n_; ++k) turn(matrix_[p * n_ + k], matrix_[q * n_ + k], c, s);
    for (std::size_t k = 0; k < n_; ++k) turn(vectors_[k * n_ + p], vectors_[k * n_ + q], c, s);
  }

  static void turn(double& a, double& b, double c, double s) {
    const double first = c * a - s * b;
    b = s * a + c * b;
    a = first;
  }

  std::vector<double> matrix_, vectors_;  // eigenvectors are columns
  const std::size_t n_;
};

/// Adds up p·pᵀ over patches p of images.
class PatchProducts {
 public:
  explicit PatchProducts(const Shape& images)
      : channels_(images[1]),
        height_(images[2]),
        width_(images[3]),
        size_(std::size_t(channels_ * kPatch * kPatch)),
        sums_(size_ * size_) {}

  void add(const float* image) {
    std::vector<double> patch(size_);
    for (std::int64_t y = 0; y + kPatch <= height_; ++y) {
      for (std::int64_t x = 0; x + kPatch <= width_; ++x) {
        take(image + y * width_ + x, patch);
        add_products(patch);
      }
    }
  }

  std::vector<double> mean() const {
    std::vector<double> mean(size_ * size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < size_; ++j) {
        mean[i * size_ + j] = sums_[std::max(i, j) * size_ + std::min(i, j)] / double(count_);
      }
    }
    return mean;
  }

 private:
  // Copies the patch whose upper left corner is at `corner`, in the order of a filter's weights.
  void take(const float* corner, std::vector<double>& patch) const {
    double* to = patch.data();
    for (std::int64_t c = 0; c < channels_; ++c) {
      const float* from = corner + c * height_ * width_;
      for (std::int64_t i = 0; i < kPatch * kPatch; ++i) {
        *to++ = double(from[i / kPatch * width_ + i % kPatch]);
      }
    }
  }

  void add_products(const std::vector<double>& patch) {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) sums_[i * size_ + j] += patch[i] * patch[j];
    }
    ++count_;
  }

  const std::int64_t channels_, height_, width_;
  const std::size_t size_;
  std::vector<double> sums_;  // only the diagonal and the elements below it
  std::int64_t count_ = 0;
};

}  // namespace

Eigensystem eigensystem(std::vector<double> matrix, std::size_t n) {
  JacobiRotations rotations(std::move(matrix), n);
  rotations.run();
  return rotations.result();
}

Tensor whitening_filters(const Tensor& images) {
  const Shape& shape = images.shape();
  PatchProducts products(shape);
  const std::int64_t image = shape.elements() / shape[0];
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    products.add(images.data<float>().data() + i * image);
  }
  const std::size_t size = std::size_t(shape[1] * kPatch * kPatch);
  const Eigensystem system = eigensystem(products.mean(), size);
  Tensor filters(DType::kFloat32, {whitening_filter_count(shape[1]), shape[1], kPatch, kPatch});
  const auto weights = filters.data<float>();
  for (std::size_t i = 0; i < size; ++i) {
    const double scale = 1 / std::sqrt(std::max(system.values[i], 0.0) + kSmallestVariance);
    for (std::size_t k = 0; k < size; ++k) {
      weights[i * size + k] = float(system.vectors[i][k] * scale);
      weights[(size + i) * size + k] = -weights[i * size + k];
    }
  }
  return filters;
}

Tensor whitening_filters(const Pipeline& images) {
  PipelineReader reader(images);
  const InputBatch* const batch = reader.next();
  if (batch == nullptr) {
    throw Error(ErrorCode::kInvalidArgument, "there are no images to make whitening filters from");
  }
  return whitening_filters(batch->values);
}

}  // namespace paceline::models
