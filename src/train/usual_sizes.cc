#include "train/usual_sizes.h"

#include <algorithm>

namespace paceline {

UsualSizes::UsualSizes(std::span<const Training> trainings, std::span<const Graph* const> graphs,
                       const SessionOptions& options)
    : originals_(graphs.begin(), graphs.end()), options_(options) {
  for (const Graph* const graph : originals_) {
    const std::vector<Value> inputs = open_inputs(*graph);
    const bool is_trained = std::ranges::any_of(
        trainings, [&](const Training& training) { return &training.graph() == graph; });
    if (is_trained) check_sized(inputs, graph->usual_sizes());
    const bool sized = is_trained || is_sized(inputs, graph->usual_sizes());
    copies_.push_back(inputs.empty() || !sized
                          ? nullptr
                          : std::make_unique<SizedCopy>(*graph, graph->usual_sizes()));
    graphs_.push_back(copies_.back() ? &copies_.back()->graph() : graph);
  }
  for (const Training& training : trainings) {
    const auto at =
        std::size_t(std::ranges::find(originals_, &training.graph()) - originals_.begin());
    trainings_.push_back(copies_[at] ? copies_[at]->of(training) : training);
  }
  for (Value& value : options_.watch) value = of(value);
  if (options_.examples_per_step > 0) {
    options_.examples_per_step = of(options_.examples_per_step);
  }
}

std::int64_t UsualSizes::of(std::int64_t dimension) const {
  const std::int64_t size = sized(dimension, originals_[0]->usual_sizes());
  return is_open(size) ? 1 : size;
}

Value UsualSizes::of(const Value& value) const {
  if (!value) return value;
  const auto at = std::size_t(std::ranges::find(originals_, &value.graph()) - originals_.begin());
  return at < copies_.size() && copies_[at] ? copies_[at]->of(value) : value;
}

}  // namespace paceline
