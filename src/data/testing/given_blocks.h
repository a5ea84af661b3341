// For tests: delivers blocks of records in the order that a test chooses.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

class GivenBlocks : public RecordBlocks {
 public:
  std::int64_t begin(const Wish& wish, std::function<void()> changed) override {
    wished = wish;
    told = std::move(changed);
    ++begins;
    is_revoked = false;
    return first_taken;
  }
  void end() override { ++ends; }
  RecordRange take(std::int64_t most) override {
    if (blocks.empty()) return {};
    RecordRange& first = blocks.front();
    const RecordRange next{first.first, first.first + std::min(most, first.size())};
    first.first = next.end;
    if (first.size() == 0) blocks.erase(blocks.begin());
    return next;
  }
  bool over() const override { return is_over; }
  bool revoked() const override { return is_revoked; }
  void check_wait() override {
    if (check) check();
  }

  std::vector<RecordRange> blocks;
  bool is_over = false, is_revoked = false;
  std::int64_t first_taken = 0;
  std::function<void()> check;
  // The last wish, and the callback that was passed with it.
  Wish wished;
  std::function<void()> told;
  int begins = 0, ends = 0;
};

}  // namespace paceline
