#include "bench/reducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace paceline::bench {
namespace {

std::vector<VariableSpec> numbers_of_bytes(std::size_t bytes) {
  return {{.name = "numbers", .shape = {std::int64_t(bytes / sizeof(float))}}};
}

std::shared_ptr<const std::vector<Bucket>> one_bucket(std::span<const VariableSpec> variables,
                                                      const ContributionLayout& layout) {
  PlanBinding plan;
  plan.uses.push_back({.variable = 0, .updated = true});
  return std::make_shared<const std::vector<Bucket>>(buckets_of(variables, layout, plan));
}

// A member contributes the same number in every element.
float contribution_of(int rank) { return float(rank + 1); }

}  // namespace

Reducer::Reducer(int rank, int members, bool in_place, std::size_t bytes)
    : variables_(numbers_of_bytes(bytes)),
      layout_(variables_),
      buckets_(one_bucket(variables_, layout_)) {
  group_.members.resize(std::size_t(members));
  std::iota(group_.members.begin(), group_.members.end(), 0);
  group_.rank = rank;
  group_.weights.assign(std::size_t(members), 1.0f / float(members));
  group_.in_place = in_place;
}

void Reducer::fill(Collectives& engine) const {
  auto* const place = reinterpret_cast<float*>(engine.memory().data() + layout_.offset(0));
  std::fill_n(place, buckets_->front().elements, contribution_of(group_.rank));
}

double Reducer::reduce(Collectives& engine, const std::function<void()>& meet,
                       const std::function<void(const std::function<bool()>&)>& wait) {
  ++group_.tag;
  engine.begin(buckets_);
  engine.open(group_.tag);
  meet();
  const auto begun = std::chrono::steady_clock::now();
  engine.start(group_);
  engine.contribute(0, 0);
  wait([this] { return reduced_ == group_.tag || failed_; });
  if (failed_) throw *error_;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void Reducer::check_sums(const Collectives& engine) const {
  std::vector<SumPart> parts;
  engine.sum_of(0, parts);
  const float mean = (contribution_of(0) + contribution_of(int(group_.members.size()) - 1)) / 2;
  std::size_t right = 0;
  for (const SumPart& part : parts) right += std::size_t(std::ranges::count(part.values, mean));
  if (right == buckets_->front().elements) return;
  throw Error(ErrorCode::kInternal,
              fmt::format("[bench] {} of {} sums are right", right, buckets_->front().elements));
}

void Reducer::reduced(std::uint64_t tag) {
  reduced_ = tag;
  wake_();
}

void Reducer::failed(const Error& error) {
  error_ = error;
  failed_ = true;
  wake_();
}

}  // namespace paceline::bench
