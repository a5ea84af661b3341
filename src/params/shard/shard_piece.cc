#include "params/shard/shard_piece.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "params/shard/copy_past_caches.h"

namespace paceline {

// A thread that changes the values first counts the change, and then looks for listeners. This
// function first notes the listener, and then reads the version. So at least one of the two threads
// sees the other.
std::uint64_t ChangeNotifier::subscribe(ChangeListener& listener) {
  const std::lock_guard lock(mutex_);
  subscribed_ = true;
  const std::uint64_t version = version_;
  subscriptions_.subscribe(&listener, version);
  return version;
}

bool ChangeNotifier::subscribe_after(std::uint64_t version, ChangeListener& listener) {
  const std::lock_guard lock(mutex_);
  subscribed_ = true;
  return subscriptions_.subscribe_after(&listener, version, version_);
}

void ChangeNotifier::tell(ShardPiece& piece) {
  ++version_;
  if (!subscribed_) return;
  std::vector<ChangeSubscriptions<ChangeListener*>::Subscription> told;
  {
    const std::lock_guard lock(mutex_);
    told = subscriptions_.changed(version_);
    subscribed_ = !subscriptions_.empty();
  }
  for (const auto& subscription : told)
    subscription.listener->on_changed(piece, subscription.wants_values);
}

namespace {

// The number of elements of a mean that are made and then applied at once, so that they stay in a
// cache in between.
constexpr std::size_t kMeanElements = std::size_t{1} << 12;
constexpr std::size_t kChangedElements = std::size_t{1} << 13;

// How many bytes are locked at a time. Applying a rule to this many bytes takes longer than waking
// a thread.
constexpr std::size_t kRegionBytes = std::size_t{1} << 18;
// How many elements a region has. Rows are given to another thread only if they have at least as
// many elements.
constexpr std::int64_t kApplyGrain = kRegionBytes / sizeof(float);
// Copies larger than this go past the caches, which they would leave before anyone reads them.
constexpr std::size_t kMostCached = std::size_t{4} << 20;

thread_local Duration waited_for_locks{0};

// Locks the mutex, and counts the time of waiting while another thread has it.
std::unique_lock<std::mutex> counted_lock(std::mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  const auto began = std::chrono::steady_clock::now();
  lock.lock();
  waited_for_locks += std::chrono::steady_clock::now() - began;
  return lock;
}

void copy_through_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  copy_bytes(to.data(), from.data(), from.size());
}

/// Returns the copy function for parts of this many bytes.
auto copy_for(std::size_t bytes) {
  return bytes > kMostCached ? copy_past_caches : copy_through_caches;
}

// Assigns a block at a time, past the caches. If the writer wrote line by line while another core
// reads, writer and reader would wait for each other at every line. The writer begins at the end,
// so that it does not meet the reader at every block.
void assign_changed(std::span<float> values, std::int64_t time, const AfterRead& change) {
  std::array<float, kChangedElements> buffer;
  while (!values.empty()) {
    const std::size_t size = (values.size() - 1) % kChangedElements + 1;
    const std::span<float> last = values.last(size), changed = std::span(buffer).first(size);
    std::ranges::copy(last, changed.begin());
    change(time, changed);
    apply_rule(Assign{}, {}, {.values = last, .slots = {}, .gradient = changed});
    values = values.first(values.size() - size);
  }
}

}  // namespace

ShardPiece::ShardPiece(const VariableSpec& variable, const Piece& where, std::span<std::byte> value,
                       ApplyPool& pool)
    : where_(where),
      memory_(variable, where.first_row, where.rows, value),
      region_bytes_(variable.sparse ? std::max<std::size_t>(value.size(), 1) : kRegionBytes),
      pool_(pool),
      regions_(std::max<std::size_t>(1, (value.size() + region_bytes_ - 1) / region_bytes_)) {}

Duration ShardPiece::take_lock_wait() { return std::exchange(waited_for_locks, Duration(0)); }

template <typename F>
void ShardPiece::for_regions(std::size_t begin, std::size_t end, F&& function) {
  while (begin < end) {
    const std::size_t region = begin / region_bytes_;
    const std::size_t stop = std::min(end, (region + 1) * region_bytes_);
    const auto lock = counted_lock(regions_[region]);
    function(begin, stop);
    begin = stop;
  }
}

// Locks all regions. This cannot deadlock: every thread that holds more than one region has locked
// them in this order.
std::vector<std::unique_lock<std::mutex>> ShardPiece::lock_all() {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (std::mutex& region : regions_) locks.push_back(counted_lock(region));
  return locks;
}

std::int64_t ShardPiece::begin_contribution() {
  const std::lock_guard lock(under_way_mutex_);
  ++under_way_;
  return memory_.next_count();
}

void ShardPiece::end_contribution() {
  const std::lock_guard lock(under_way_mutex_);
  if (--under_way_ > 0 || !to_be_marked_) return;
  memory_.mark();
  to_be_marked_ = false;
  none_under_way_.notify_all();
}

void ShardPiece::mark() {
  const std::lock_guard lock(under_way_mutex_);
  to_be_marked_ = under_way_ > 0;
  if (!to_be_marked_) memory_.mark();
}

void ShardPiece::wait_marked(Deadline deadline) {
  std::unique_lock lock(under_way_mutex_);
  if (none_under_way_.wait_until(lock, deadline.time(), [this] { return !to_be_marked_; })) return;
  const auto locks = lock_all();
  memory_.mark();
  to_be_marked_ = false;
}

void ShardPiece::apply(const RuleStep& step, std::size_t offset,
                       std::span<const std::byte> gradient, std::span<std::byte> updated) {
  if (variable().rule.whole()) return apply_whole(step, gradient, updated);
  const float* const floats = reinterpret_cast<const float*>(gradient.data());
  const auto copy = copy_for(updated.size());
  const auto part = [&](std::size_t begin, std::size_t end) {
    const std::size_t done = begin - offset, bytes = end - begin;
    memory_.apply_range(step, std::int64_t(begin / sizeof(float)),
                        {floats + done / sizeof(float), bytes / sizeof(float)});
    if (!updated.empty()) copy(memory_.value().subspan(begin, bytes), updated.subspan(done, bytes));
  };
  // Cuts the range at the bounds of regions, so that each part is written under one lock.
  const std::size_t end = offset + gradient.size();
  const std::size_t first = offset / region_bytes_;
  const std::size_t last = (end + region_bytes_ - 1) / region_bytes_;
  pool_.for_ranges(std::int64_t(last - first), 1, [&](std::int64_t from, std::int64_t to) {
    for_regions(std::max(offset, (first + std::size_t(from)) * region_bytes_),
                std::min(end, (first + std::size_t(to)) * region_bytes_), part);
  });
  changes_.tell(*this);
}

void ShardPiece::apply_mean(const RuleStep& step, std::span<const MeanPart> parts) {
  const DenseMean dense(parts);
  const auto part = [&](std::size_t begin, std::size_t end) {
    std::array<float, kMeanElements> mean;
    for (std::size_t at = begin; at < end; at += sizeof(mean)) {
      const std::size_t first = at / sizeof(float);
      const std::span some(mean.data(), std::min(sizeof(mean), end - at) / sizeof(float));
      dense.write(first, some);
      memory_.apply_range(step, std::int64_t(first), some);
    }
  };
  pool_.for_ranges(std::int64_t(regions_.size()), 1, [&](std::int64_t from, std::int64_t to) {
    for_regions(std::size_t(from) * region_bytes_,
                std::min(bytes(), std::size_t(to) * region_bytes_), part);
  });
  changes_.tell(*this);
}

void ShardPiece::apply_whole(const RuleStep& step, std::span<const std::byte> gradient,
                             std::span<std::byte> updated) {
  PACELINE_CHECK(gradient.size() == bytes());
  {
    const auto locks = lock_all();
    pool_.with_threads([&](ThreadPool& threads) {
      memory_.apply_whole(step, reinterpret_cast<const float*>(gradient.data()), threads);
    });
    copy_bytes(updated.data(), memory_.value().data(), updated.size());
  }
  changes_.tell(*this);
}

void ShardPiece::apply_rows(const RuleStep& step, std::span<const std::int32_t> rows,
                            const float* gradient) {
  const std::int64_t row_size = std::int64_t(row_bytes() / sizeof(float));
  const std::int64_t grain =
      std::max<std::int64_t>(1, kApplyGrain / std::max<std::int64_t>(row_size, 1));
  {
    const auto lock = counted_lock(regions_.front());
    pool_.for_ranges(std::int64_t(rows.size()), grain, [&](std::int64_t first, std::int64_t last) {
      memory_.apply_row_range(step, rows.subspan(std::size_t(first), std::size_t(last - first)),
                              gradient + first * row_size);
    });
  }
  changes_.tell(*this);
}

void ShardPiece::copy(std::size_t offset, std::span<std::byte> values) {
  const auto copy = copy_for(values.size());
  for_regions(offset, offset + values.size(), [&](std::size_t begin, std::size_t end) {
    copy(memory_.value().subspan(begin, end - begin), values.subspan(begin - offset, end - begin));
  });
}

void ShardPiece::copy_rows(std::span<const std::int32_t> rows, std::span<std::byte> values) {
  const std::lock_guard lock(regions_.front());
  if (row_bytes() == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = std::size_t(rows[i] - where_.first_row);
    copy_bytes(values.data() + i * row_bytes(), memory_.value().data() + row * row_bytes(),
               row_bytes());
  }
}

void ShardPiece::change_after_reads(const AfterRead& change) {
  PACELINE_CHECK(variable().dtype == DType::kFloat32);
  after_read_ = &change;
}

void ShardPiece::change(Reading reading) {
  const std::int64_t time = reads_++;
  for_regions(0, bytes(), [&](std::size_t begin, std::size_t end) {
    memory_.before_change(begin, end);
    const std::span values(reinterpret_cast<float*>(memory_.value().data() + begin),
                           (end - begin) / sizeof(float));
    if (reading == Reading::kInPlace) return assign_changed(values, time, *after_read_);
    (*after_read_)(time, values);
  });
  changes_.tell(*this);
}

void ShardPiece::write(std::size_t array, std::size_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  {
    const auto locks = lock_all();
    memory_.write(array, offset, bytes);
  }
  changes_.tell(*this);
}

void ShardPiece::copy_all(std::span<std::byte> bytes) {
  const auto locks = lock_all();
  memory_.copy_all(bytes);
}

}  // namespace paceline
