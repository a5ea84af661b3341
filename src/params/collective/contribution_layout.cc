#include "params/collective/contribution_layout.h"

#include <algorithm>
#include <limits>

#include "base/buffer.h"

namespace paceline {
namespace {

// The most bytes of a bucket that several small variables share. Small variables share a bucket,
// since a message takes as long as the reduction of some thousand numbers.
constexpr std::size_t kBucketBytes = std::size_t{1} << 20;

std::size_t contribution_bytes(const VariableSpec& variable) {
  return std::size_t(variable.shape.elements()) * sizeof(float);
}

}  // namespace

ContributionLayout::ContributionLayout(std::span<const VariableSpec> variables) {
  for (const VariableSpec& variable : variables) {
    offsets_.push_back(bytes_);
    if (variable.trained) bytes_ += round_up(contribution_bytes(variable), kBufferAlignment);
    ids_.push_back(bytes_);
    if (!variable.trained || !variable.sparse) continue;
    bytes_ += round_up(std::size_t(variable.shape[0]) * sizeof(std::int32_t), kBufferAlignment);
  }
  bytes_ = std::max(bytes_, kBufferAlignment);
}

std::vector<Bucket> buckets_of(std::span<const VariableSpec> variables,
                               const ContributionLayout& layout, const PlanBinding& plan) {
  constexpr std::size_t kNotUpdated = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> priorities(variables.size(), kNotUpdated);
  for (std::size_t i = 0; i < plan.uses.size(); ++i) {
    if (plan.uses[i].updated) priorities[std::size_t(plan.uses[i].variable)] = i;
  }
  std::vector<Bucket> buckets;
  for (std::size_t v = 0; v < variables.size(); ++v) {
    if (priorities[v] == kNotUpdated) continue;
    const std::size_t offset = layout.offset(VariableId(v));
    const std::size_t end = offset + contribution_bytes(variables[v]);
    Bucket* const last = buckets.empty() ? nullptr : &buckets.back();
    const bool joins = last != nullptr && !last->sparse && !variables[v].sparse &&
                       last->variables.back() == VariableId(v) - 1 &&
                       end - last->offset <= kBucketBytes;
    if (joins) {
      last->variables.push_back(VariableId(v));
      last->elements = (end - last->offset) / sizeof(float);
      last->priority = std::min(last->priority, priorities[v]);
    } else {
      buckets.push_back({.variables = {VariableId(v)},
                         .sparse = variables[v].sparse,
                         .offset = offset,
                         .elements = (end - offset) / sizeof(float),
                         .priority = priorities[v]});
    }
  }
  return buckets;
}

std::uint64_t fingerprint_of(std::span<const Bucket> buckets) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto mix = [&](std::uint64_t number) { hash = (hash ^ number) * 1099511628211u; };
  for (const Bucket& bucket : buckets) {
    for (const VariableId variable : bucket.variables) mix(std::uint64_t(variable));
    mix(bucket.elements);
    mix(bucket.sparse ? 1 : 0);
  }
  return hash;
}

}  // namespace paceline
