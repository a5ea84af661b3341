#include "params/collective/mpi_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/denormals.h"
#include "params/collective/mpi_library.h"
#include "params/variable_arrays.h"
#include "params/weighted_sum.h"

namespace paceline {
namespace {

// How many times to test a meeting without sleeping. The count is small, since the other members
// may still compute for long.
constexpr int kPatientToMeet = 200;
// How many times to test a sum without sleeping, once all members have met. The count is large,
// since MPI moves the numbers only during a test.
constexpr int kPatientToSum = 100'000;
constexpr std::chrono::microseconds kBetweenLooks{50};
// MPI counts in int.
constexpr std::size_t kMostAtOnce = std::size_t(1) << 28;

}  // namespace

MpiCollectives::MpiCollectives(std::span<const VariableSpec> variables,
                               const ContributionLayout& layout, int worker, int workers,
                               const MpiCalls& calls, ReductionListener& listener)
    : variables_(variables),
      layout_(layout),
      calls_(calls),
      listener_(listener),
      contributions_(layout.bytes()),
      sums_(layout.bytes()) {
  if (calls.rank() != worker || calls.size() != workers) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[mpi] worker:{} of {} is rank {} of {}", worker, workers, calls.rank(),
                            calls.size()));
  }
  thread_ = std::thread([this] { run(); });
}

MpiCollectives::~MpiCollectives() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MpiCollectives::begin(std::shared_ptr<const std::vector<Bucket>> buckets) {
  const std::lock_guard lock(mutex_);
  if (reducing_) {
    throw Error(ErrorCode::kFailedPrecondition,
                "[mpi] a step was given up while it was being reduced, which MPI cannot do");
  }
  group_.reset();
  buckets_ = std::move(buckets);
  work_.resize(buckets_->size());
  for (Work& work : work_) work.contributed = false;
  order_.resize(buckets_->size());
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, std::ranges::greater(),
                    [this](std::size_t b) { return (*buckets_)[b].priority; });
}

void MpiCollectives::start(const ReductionGroup& group) {
  {
    const std::lock_guard lock(mutex_);
    group_ = group;
  }
  changed_.notify_all();
}

void MpiCollectives::contribute(std::size_t bucket, std::size_t rows) {
  {
    const std::lock_guard lock(mutex_);
    work_[bucket].contributed = true;
    work_[bucket].rows = rows;
  }
  changed_.notify_all();
}

void MpiCollectives::rest() {
  {
    const std::lock_guard lock(mutex_);
    resting_ = true;
  }
  changed_.notify_all();
}

void MpiCollectives::run() {
  const FlushDenormals flush;
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || resting_ || group_; });
    if (stopped_) return;
    const std::optional<ReductionGroup> group = std::exchange(group_, {});
    reducing_ = group.has_value();
    lock.unlock();
    try {
      if (group) reduce(*group);
    } catch (const Stopped&) {
      return;
    } catch (const Error& error) {
      listener_.failed(error);
    }
    lock.lock();
    reducing_ = false;
    const bool rests = std::exchange(resting_, false);
    lock.unlock();
    if (rests) {
      listener_.rested();
    } else if (group) {
      listener_.reduced(group->tag);
    }
    lock.lock();
  }
}

void MpiCollectives::reduce(const ReductionGroup& group) {
  void* const communicator = communicator_of(group);
  for (const std::size_t bucket : order_) {
    wait_contributed(bucket);
    void* request = nullptr;
    check_mpi(calls_.begin_meet(communicator, &request), "meeting");
    finish(request, kPatientToMeet, "meeting");
    if ((*buckets_)[bucket].sparse) {
      sum_rows_of(group, communicator, bucket);
    } else {
      sum_bucket(group, communicator, bucket);
    }
  }
}

void MpiCollectives::wait_contributed(std::size_t bucket) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || work_[bucket].contributed; });
  if (stopped_) throw Stopped();
}

void MpiCollectives::finish(void* request, int patient, const char* what) {
  bool done = false;
  for (int looks = 0; !done; ++looks) {
    check_mpi(calls_.test(request, &done), what);
    if (done) return;
    if (stopped_) throw Stopped();
    if (looks < patient) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

// The map of groups never shrinks. It stays small, since a job has few groups.
void* MpiCollectives::communicator_of(const ReductionGroup& group) {
  const auto known = groups_.find(group.members);
  if (known != groups_.end()) return known->second;
  const std::vector<int> ranks(group.members.begin(), group.members.end());
  void* made = nullptr;
  check_mpi(calls_.make_group(ranks.data(), int(ranks.size()), &made), "making a group");
  groups_.emplace(group.members, made);
  return made;
}

void MpiCollectives::sum_bucket(const ReductionGroup& group, void* communicator,
                                std::size_t bucket) {
  const Bucket& what = (*buckets_)[bucket];
  const auto* const own =
      reinterpret_cast<const float*>(contributions_.span().data() + what.offset);
  auto* const sums = reinterpret_cast<float*>(sums_.span().data() + what.offset);
  scale(group.weights[std::size_t(group.rank)], {own, what.elements}, sums);
  for (std::size_t first = 0; first < what.elements; first += kMostAtOnce) {
    const std::size_t count = std::min(kMostAtOnce, what.elements - first);
    void* request = nullptr;
    check_mpi(calls_.begin_sum(communicator, sums + first, int(count), &request), "summing");
    finish(request, kPatientToSum, "summing");
  }
}

// Every member gets the rows of all others, and sums them in the order of the members.
void MpiCollectives::sum_rows_of(const ReductionGroup& group, void* communicator,
                                 std::size_t bucket) {
  const VariableId variable = (*buckets_)[bucket].variables.front();
  const VariableSpec& spec = variables_[std::size_t(variable)];
  const std::size_t row = row_elements(spec), members = group.members.size();
  const auto gather = [&](const void* own, void* all, const std::vector<int>& counts,
                          const std::vector<int>& begins, std::size_t bytes) {
    void* request = nullptr;
    check_mpi(calls_.begin_gather(communicator, own, all, counts.data(), begins.data(), int(bytes),
                                  &request),
              "gathering rows");
    finish(request, kPatientToSum, "gathering rows");
  };
  std::vector<int> counts(members), begins(members), places(members);
  std::iota(places.begin(), places.end(), 0);
  const int own = int(work_[bucket].rows);
  gather(&own, counts.data(), std::vector<int>(members, 1), places, sizeof(int));
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  const std::size_t total = std::size_t(begins.back()) + std::size_t(counts.back());
  std::vector<std::int32_t> ids(total);
  std::vector<float> rows(total * row);
  const std::byte* const memory = contributions_.span().data();
  gather(memory + layout_.ids_offset(variable), ids.data(), counts, begins, sizeof(std::int32_t));
  gather(memory + layout_.offset(variable), rows.data(), counts, begins, row * sizeof(float));
  std::vector<WeightedRows> parts;
  for (std::size_t k = 0; k < members; ++k) {
    const auto begin = std::size_t(begins[k]);
    parts.push_back({.weight = group.weights[k],
                     .ids = std::span(ids).subspan(begin, std::size_t(counts[k])),
                     .rows = rows.data() + begin * row});
  }
  sum_rows(parts, row, work_[bucket].ids, work_[bucket].row_sums);
}

void MpiCollectives::sum_of(std::size_t bucket, std::vector<SumPart>& parts) const {
  const Bucket& what = (*buckets_)[bucket];
  const auto* const sums = reinterpret_cast<const float*>(sums_.data() + what.offset);
  parts.assign(1, {0, {sums, what.elements}});
}

RowSums MpiCollectives::row_sums_of(std::size_t bucket) const {
  return {work_[bucket].ids, work_[bucket].row_sums};
}

}  // namespace paceline
