#include "data/example_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "paceline/error.h"

namespace paceline {

bool BadRecords::contains(std::int64_t index) const {
  if (count_ == 0) return false;
  const std::lock_guard lock(mutex_);
  return why_.contains(index);
}

void BadRecords::add(std::int64_t index, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!why_.emplace(index, why).second) return;
    ++count_;
    if (count_ > plan_.max_bad) {
      throw Error(ErrorCode::kDataLoss,
                  plan_.max_bad == 0
                      ? fmt::format("{} (--max-bad N leaves out up to N bad records)", why)
                      : fmt::format("{} bad records, and --max-bad is {}; the last: {}",
                                    count_.load(), plan_.max_bad, why));
    }
  }
  if (plan_.on_bad) plan_.on_bad(why);
}

bool ExampleMaker::prepare(const Ticket& ticket) {
  example_.epoch = ticket.epoch;
  example_.place = ticket.record.place;
  const std::int64_t records = plan_.records();
  for (std::int64_t i = 0; i < records; ++i) {
    const std::int64_t index = (ticket.record.index + i) % records;
    if (bad_.contains(index)) continue;
    try {
      make(index);
      return i == 0;
    } catch (const Error& error) {
      constexpr ErrorCode kBad[] = {ErrorCode::kDataLoss, ErrorCode::kNotFound,
                                    ErrorCode::kUnavailable};
      if (std::ranges::find(kBad, error.code()) == std::end(kBad)) throw;
      bad_.add(index, error.what());
    }
  }
  throw Error(ErrorCode::kDataLoss, "all records of the data are bad");
}

// Returns the stage after the last cache that holds the record; 0 when none does.
std::size_t ExampleMaker::find_cached() {
  for (std::size_t stage = plan_.stages.size(); stage > 0; --stage) {
    const RecordCache* const cache = plan_.stages[stage - 1].cache.get();
    if (cache != nullptr && cache->find(example_)) return stage;
  }
  return 0;
}

void ExampleMaker::make(std::int64_t index) {
  example_.index = index;
  TimePoint begun = clock_.now();
  std::size_t stage = find_cached();
  if (stage == 0) {
    plan_.source->read(index, example_);
    count(0, std::exchange(begun, clock_.now()));
  } else {
    count(stage, std::exchange(begun, clock_.now()));
  }
  for (; stage < plan_.stages.size(); ++stage) {
    const PipelinePlan::Stage& each = plan_.stages[stage];
    if (each.cache != nullptr) {
      each.cache->keep(example_);
    } else {
      each.function(example_);
    }
    count(stage + 1, std::exchange(begun, clock_.now()));
  }
}

void ExampleMaker::write(std::span<float> values) {
  const TimePoint begun = clock_.now();
  plan_.into(example_, values);
  count(times_.size() - 1, begun);
}

void ExampleMaker::count(std::size_t stage, TimePoint since) {
  ++times_[stage].records;
  times_[stage].spent += clock_.now() - since;
}

void ExampleMaker::hand_over_times(std::vector<StageTimes>& to) {
  for (std::size_t stage = 0; stage < times_.size(); ++stage) {
    const StageTimes times = std::exchange(times_[stage], {});
    to[stage].records += times.records;
    to[stage].spent += times.spent;
  }
}

}  // namespace paceline
