// Views are products with matrices of zeros and ones.
#include "models/image_views.h"

#include <algorithm>
#include <vector>

#include "paceline/ops.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kShifts[] = {0, 1, -1};

// The matrix M for which row i of M·x is row i − shift of x.
Tensor shifted_rows(std::int64_t count, std::int64_t shift) {
  Tensor matrix(DType::kFloat32, {count, count});
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t from = std::abs(i - shift);
    if (from >= count) from = 2 * (count - 1) - from;
    matrix.data<float>()[std::size_t(i * count + from)] = 1;
  }
  return matrix;
}

// The matrix M for which column i of x·M is column i − shift of x, or mirrored.
Tensor shifted_columns(std::int64_t count, std::int64_t shift, bool mirrored) {
  const Tensor rows = shifted_rows(count, shift);
  Tensor matrix(DType::kFloat32, {count, count});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t column = mirrored ? count - 1 - i : i;
    for (std::int64_t k = 0; k < count; ++k) {
      matrix.data<float>()[std::size_t(k * count + column)] =
          rows.data<float>()[std::size_t(i * count + k)];
    }
  }
  return matrix;
}

}  // namespace

Value image_views(Value images) {
  Graph& graph = images.graph();
  const std::int64_t height = images.shape()[2], width = images.shape()[3];
  std::vector<Value> views;
  for (const bool mirrored : {false, true}) {
    for (const std::int64_t shift : kShifts) {
      const Value columns = graph.constant(shifted_columns(width, shift, mirrored));
      const Value rows = graph.constant(shifted_rows(height, shift));
      views.push_back(matmul(rows, matmul(images, columns)));
    }
  }
  return concat(views, 0);
}

Value mean_of_views(Value logits) {
  const std::int64_t images = logits.shape()[0] / kImageViews, classes = logits.shape()[1];
  const Value weights = logits.graph().constant(
      Tensor::of<float>({kImageViews, 1, 1}, {0.25f, 0.125f, 0.125f, 0.25f, 0.125f, 0.125f}));
  return reduce_sum(reshape(logits, {kImageViews, images, classes}) * weights, {0});
}

}  // namespace paceline::models
