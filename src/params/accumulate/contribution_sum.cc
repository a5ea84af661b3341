#include "params/accumulate/contribution_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "paceline/error.h"
#include "params/variable_arrays.h"
#include "params/weighted_sum.h"

namespace paceline {
namespace {

constexpr std::int32_t kNowhere = -1;

template <typename F>
void for_ranges(ThreadPool* pool, std::int64_t n, F&& function) {
  if (pool == nullptr) return function(std::int64_t{0}, n);
  pool->parallel_for(n, kNumbersGrain, function);
}

}  // namespace

std::int64_t ContributionSum::most_rows_of_mean(const VariableSpec& spec, std::int64_t most_rows,
                                                int contributions) {
  return spec.sparse ? std::min(spec.shape[0], most_rows * contributions) : 0;
}

ContributionSum::ContributionSum(const VariableSpec& spec, std::int64_t most_rows,
                                 int contributions, ThreadPool* pool)
    : spec_(spec),
      pool_(pool),
      sum_(spec.dtype, contribution_shape(spec, most_rows_of_mean(spec, most_rows, contributions))),
      next_(spec.dtype, contribution_shape(spec, most_rows)) {
  if (!spec.sparse) return;
  const auto rows = std::size_t(sum_.shape()[0]);
  for (std::vector<std::int32_t>* list : {&ids_, &sorted_ids_, &order_}) list->reserve(rows);
  index_.assign(std::size_t(spec.shape[0]), kNowhere);
}

std::int64_t ContributionSum::row_elements() const {
  return spec_.shape[0] == 0 ? 0 : spec_.shape.elements() / spec_.shape[0];
}

// The first contribution of a dense variable is written where the sum will be.
TensorView ContributionSum::place() {
  return spec_.sparse || added_ > 0 ? next_.view() : sum_.view();
}

void ContributionSum::add(const Contribution& contribution, float weight) {
  if (contribution.sparse) {
    add_rows(contribution.ids, weight);
  } else if (added_ > 0) {
    float* const sum = sum_.data<float>().data();
    const float* const next = next_.data<float>().data();
    for_ranges(pool_, sum_.elements(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum[i] += weight * next[i];
    });
  } else if (weight != 1) {
    for (float& value : sum_.data<float>()) value *= weight;
  }
  ++added_;
  weights_ += double(weight);
}

void ContributionSum::add_rows(std::span<const std::int32_t> ids, float weight) {
  const std::int64_t row = row_elements();
  const float* next = next_.data<float>().data();
  for (const std::int32_t id : ids) {
    if (id < 0 || std::size_t(id) >= index_.size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[variable {}] row {} of a contribution is outside [0,{})",
                              spec_.name, id, index_.size()));
    }
    std::int32_t& index = index_[std::size_t(id)];
    const bool known = index != kNowhere;
    if (!known) {
      index = std::int32_t(ids_.size());
      ids_.push_back(id);
    }
    float* const sum = sum_.data<float>().data() + index * row;
    for (std::int64_t i = 0; i < row; ++i) {
      const float value = weight * next[i];
      sum[i] = known ? sum[i] + value : value;
    }
    next += row;
  }
}

Contribution ContributionSum::take_mean(const TensorView& into) {
  added_ = 0;
  const float factor = 1.0f / float(std::exchange(weights_, 0));
  if (spec_.sparse) return take_rows(into.as<float>(), factor);
  const float* const sum = sum_.data<float>().data();
  float* const mean = into.as<float>();
  for_ranges(pool_, sum_.elements(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) mean[i] = sum[i] * factor;
  });
  return {};
}

Contribution ContributionSum::take_rows(float* into, float factor) {
  const std::int64_t row = row_elements();
  order_.resize(ids_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, {}, [this](std::int32_t at) { return ids_[std::size_t(at)]; });
  sorted_ids_.clear();
  for (const std::int32_t at : order_) {
    const std::int32_t id = ids_[std::size_t(at)];
    const float* const sum = sum_.data<float>().data() + at * row;
    for (std::int64_t i = 0; i < row; ++i) into[i] = sum[i] * factor;
    into += row;
    sorted_ids_.push_back(id);
    index_[std::size_t(id)] = kNowhere;
  }
  ids_.clear();
  return {.sparse = true, .ids = sorted_ids_};
}

double ContributionSum::squares(const TensorView& mean) const {
  const std::int64_t elements =
      spec_.sparse ? std::int64_t(sorted_ids_.size()) * row_elements() : sum_.elements();
  const float* const values = mean.as<float>();
  double sum = 0;
  for (std::int64_t i = 0; i < elements; ++i) sum += double(values[i]) * double(values[i]);
  return sum;
}

}  // namespace paceline
