// For tests of every engine that reduces: variables of all kinds, each worker's contributions, and
// the sums that must result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "params/collective/collectives.h"

namespace paceline {

class ReductionValues {
 public:
  ReductionValues() : layout_(variables_) {
    PlanBinding plan;
    for (std::size_t v = 0; v < variables_.size(); ++v) {
      plan.uses.push_back(
          {.variable = VariableId(variables_.size() - 1 - v), .updated = true, .most_rows = 50});
    }
    buckets_ = std::make_shared<const std::vector<Bucket>>(buckets_of(variables_, layout_, plan));
  }

  const std::vector<VariableSpec>& variables() const { return variables_; }
  const ContributionLayout& layout() const { return layout_; }
  const std::shared_ptr<const std::vector<Bucket>>& buckets() const { return buckets_; }

  /// Contributes the worker's numbers of this step to all buckets.
  void contribute(Collectives& collectives, int worker, int step) const {
    for (std::size_t b = 0; b < buckets_->size(); ++b) {
      std::size_t rows = 0;
      for (const VariableId variable : (*buckets_)[b].variables) {
        auto* const place =
            reinterpret_cast<float*>(collectives.memory().data() + layout_.offset(variable));
        std::size_t count = elements(variable);
        if ((*buckets_)[b].sparse) {
          const std::vector<std::int32_t> ids = rows_of(worker);
          rows = ids.size();
          count = rows * 3;
          std::memcpy(collectives.memory().data() + layout_.ids_offset(variable), ids.data(),
                      rows * sizeof(std::int32_t));
        }
        for (std::size_t i = 0; i < count; ++i) place[i] = number(worker, variable, i, step);
      }
      collectives.contribute(b, rows);
    }
  }

  /// Returns the group as the worker sees it. Members have different weights.
  static ReductionGroup group(std::uint64_t tag, const std::vector<std::int32_t>& members,
                              int worker, bool in_place) {
    ReductionGroup made;
    made.tag = tag;
    made.members = members;
    made.in_place = in_place;
    made.rank = int(std::ranges::find(members, worker) - members.begin());
    float sum = 0;
    for (const std::int32_t member : members) sum += float(member + 1);
    for (const std::int32_t member : members) made.weights.push_back(float(member + 1) / sum);
    return made;
  }

  static std::vector<float> sum_of(const Collectives& collectives, const Bucket& bucket,
                                   std::size_t number) {
    std::vector<float> sum(bucket.elements);
    std::vector<SumPart> parts;
    collectives.sum_of(number, parts);
    for (const SumPart& part : parts)
      std::ranges::copy(part.values, sum.begin() + std::ptrdiff_t(part.first));
    return sum;
  }

  /// Expects that a member's sums are the weighted sums of all members' contributions.
  void expect_sums(const Collectives& collectives, const std::vector<std::int32_t>& members,
                   int step) const {
    const ReductionGroup all = group(0, members, members.front(), false);
    for (std::size_t b = 0; b < buckets_->size(); ++b) {
      const Bucket& bucket = (*buckets_)[b];
      if (bucket.sparse) {
        expect_rows(collectives, b, all, step);
        continue;
      }
      const std::vector<float> sum = sum_of(collectives, bucket, b);
      for (const VariableId v : bucket.variables) {
        const std::size_t begin = (layout_.offset(v) - bucket.offset) / sizeof(float);
        for (std::size_t i = 0; i < elements(v); i += 97) {
          double mean = 0;
          for (std::size_t k = 0; k < members.size(); ++k) {
            mean += double(all.weights[k]) * number(members[k], v, i, step);
          }
          ASSERT_NEAR(sum[begin + i], mean, 1e-4) << "variable " << v << " element " << i;
        }
      }
    }
  }

 private:
  static float number(int worker, VariableId variable, std::size_t i, int step) {
    return float((int(i) * 7 + worker * 13 + variable * 5 + step * 3) % 101 - 50) * 0.37f;
  }
  static std::vector<std::int32_t> rows_of(int worker) {
    std::vector<std::int32_t> ids;
    for (std::int32_t id = worker; id < 100; id += 2 + worker) ids.push_back(id);
    return ids;
  }
  std::size_t elements(VariableId variable) const {
    return std::size_t(variables_[std::size_t(variable)].shape.elements());
  }

  void expect_rows(const Collectives& collectives, std::size_t bucket, const ReductionGroup& all,
                   int step) const {
    const RowSums sums = collectives.row_sums_of(bucket);
    std::vector<float> expected(300);
    std::vector<bool> there(100);
    for (std::size_t k = 0; k < all.members.size(); ++k) {
      const std::vector<std::int32_t> ids = rows_of(all.members[k]);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        there[std::size_t(ids[i])] = true;
        for (std::size_t c = 0; c < 3; ++c) {
          expected[std::size_t(ids[i]) * 3 + c] +=
              all.weights[k] *
              number(all.members[k], (*buckets_)[bucket].variables[0], i * 3 + c, step);
        }
      }
    }
    ASSERT_EQ(std::int64_t(sums.ids.size()), std::ranges::count(there, true));
    for (std::size_t i = 0; i < sums.ids.size(); ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(sums.rows[i * 3 + c], expected[std::size_t(sums.ids[i]) * 3 + c]);
      }
    }
  }

  const std::vector<VariableSpec> variables_ = {{.name = "bias", .shape = {7}},
                                                {.name = "scalar", .shape = {}},
                                                {.name = "rows", .shape = {100, 3}, .sparse = true},
                                                {.name = "large", .shape = {700, 501}},
                                                {.name = "small", .shape = {33}}};
  const ContributionLayout layout_;
  std::shared_ptr<const std::vector<Bucket>> buckets_;
};

}  // namespace paceline
