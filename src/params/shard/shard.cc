#include "params/shard/shard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/copy_bytes.h"
#include "net/frame.h"
#include "paceline/error.h"
#include "params/shard/chunk_versions.h"
#include "params/shard/copy_past_caches.h"
#include "params/shard/layout.h"
#include "params/shard/saved_variables.h"
#include "params/variable_arrays.h"

namespace paceline {
namespace {

// Small enough to change no result, large enough to change every bit pattern near 1.
constexpr float kRewriteStep = 0x1p-20f;
constexpr std::size_t kRewriteElements = std::size_t{1} << 13;

// What is locked at a time: a rule takes longer for it than waking a thread.
constexpr std::size_t kRegionBytes = kVersionedBytes;
// Elements of as many rows.
constexpr std::int64_t kApplyGrain = kRegionBytes / sizeof(float);
constexpr std::size_t kMostLargeSlots = 4;
// More than this is no longer in a cache when it is read.
constexpr std::size_t kMostCached = std::size_t{4} << 20;

void copy_through_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  copy_bytes(to.data(), from.data(), from.size());
}

std::size_t machine_bytes() {
  return std::size_t(sysconf(_SC_PHYS_PAGES)) * std::size_t(sysconf(_SC_PAGESIZE));
}

// Refused before anything is allocated: what is declared comes over a link.
void check_can_hold(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                    int ps) {
  double bytes = 0;
  for (const Piece& piece : pieces) {
    if (piece.ps != ps) continue;
    const VariableSpec& variable = variables[std::size_t(piece.variable)];
    if (variable.trained && variable.dtype != DType::kFloat32) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[ps] variable {} is {}: a rule updates float32 only", variable.name,
                              name_of(variable.dtype)));
    }
    if (variable.sparse && row_bytes(variable) > kMaxPayloadBytes / 2) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("[ps] a row of {} has {} bytes, at most {} fit a message",
                              variable.name, row_bytes(variable), kMaxPayloadBytes / 2));
    }
    const double rows = double(piece.rows) * double(row_bytes(variable));
    bytes += rows * double(1 + slots_of(variable).size());
  }
  if (bytes > double(machine_bytes())) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[ps] the variables need {:.0f} MB, this machine has {:.0f} MB",
                            bytes / 1e6, double(machine_bytes()) / 1e6));
  }
}

// Assigned as a whole, past the caches: writing line by line into what another core reads takes its
// owner's answer for each, and the reader as long; from the end, so that both do not keep step with
// each other.
void assign_changed(std::span<float> values, float change) {
  std::array<float, kRewriteElements> changed;
  while (!values.empty()) {
    const std::size_t size = (values.size() - 1) % kRewriteElements + 1;
    const std::span<float> last = values.last(size);
    for (std::size_t i = 0; i < size; ++i) changed[i] = last[i] + change;
    apply_rule(Assign{}, {},
               {.values = last, .slots = {}, .gradient = std::span(changed).first(size)});
    values = values.first(values.size() - size);
  }
}

}  // namespace

ShardPiece::ShardPiece(const VariableSpec& variable, const Piece& where, std::span<std::byte> value,
                       std::span<std::uint64_t> versions, ApplyPool& pool)
    : variable_(variable),
      where_(where),
      row_bytes_(paceline::row_bytes(variable)),
      slot_specs_(slots_of(variable)),
      value_(value),
      versions_(versions),
      region_bytes_(variable.sparse ? std::max<std::size_t>(value.size(), 1) : kRegionBytes),
      pool_(pool),
      regions_(std::max<std::size_t>(1, (value.size() + region_bytes_ - 1) / region_bytes_)),
      slots_(make_slots()),
      snapshot_(kept_arrays()) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slot_specs_[i].scalar) {
      count_slot_ = int(i);
    } else {
      large_slots_.push_back(reinterpret_cast<float*>(slots_[i].data()));
    }
  }
  PACELINE_CHECK(large_slots_.size() <= kMostLargeSlots);
  reset_slots();
}

std::vector<Buffer> ShardPiece::make_slots() const {
  std::vector<Buffer> slots;
  for (const SlotSpec& slot : slot_specs_) {
    slots.emplace_back(slot.scalar ? kScalarSlotBytes : value_.size());
  }
  return slots;
}

std::vector<std::span<const std::byte>> ShardPiece::kept_arrays() const {
  std::vector<std::span<const std::byte>> arrays = {value_};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!slot_specs_[i].scalar) arrays.emplace_back(slots_[i].span());
  }
  return arrays;
}

void ShardPiece::reset_slots() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slot_specs_[i].scalar) {
      count_ = std::int64_t(slot_specs_[i].initial);
      continue;
    }
    float* const values = reinterpret_cast<float*>(slots_[i].data());
    std::fill_n(values, slots_[i].size() / sizeof(float), slot_specs_[i].initial);
  }
}

template <typename F>
void ShardPiece::for_regions(std::size_t begin, std::size_t end, F&& function) {
  while (begin < end) {
    const std::size_t region = begin / region_bytes_;
    const std::size_t stop = std::min(end, (region + 1) * region_bytes_);
    const std::lock_guard lock(regions_[region]);
    function(begin, stop);
    begin = stop;
  }
}

template <typename F>
void ShardPiece::write_regions(std::size_t begin, std::size_t end, F&& function) {
  for_regions(begin, end, [&](std::size_t from, std::size_t to) {
    const ChunkWriting writing(versions_[from / region_bytes_]);
    function(from, to);
  });
}

// Nobody else holds one region while waiting for another.
std::vector<std::unique_lock<std::mutex>> ShardPiece::lock_all() {
  std::vector<std::unique_lock<std::mutex>> locks;
  for (std::mutex& region : regions_) locks.emplace_back(region);
  return locks;
}

std::int64_t ShardPiece::begin_contribution() {
  const std::lock_guard lock(under_way_mutex_);
  ++under_way_;
  return ++count_;
}

void ShardPiece::end_contribution() {
  const std::lock_guard lock(under_way_mutex_);
  if (--under_way_ > 0 || !to_be_marked_) return;
  snapshot_.mark(count_);
  to_be_marked_ = false;
  none_under_way_.notify_all();
}

void ShardPiece::mark() {
  const std::lock_guard lock(under_way_mutex_);
  to_be_marked_ = under_way_ > 0;
  if (!to_be_marked_) snapshot_.mark(count_);
}

void ShardPiece::wait_marked(Deadline deadline) {
  std::unique_lock lock(under_way_mutex_);
  if (none_under_way_.wait_until(lock, deadline.time(), [this] { return !to_be_marked_; })) return;
  const auto locks = lock_all();
  snapshot_.mark(count_);
  to_be_marked_ = false;
}

std::span<const std::byte> ShardPiece::read_marked(std::size_t array, std::size_t offset,
                                                   std::size_t bytes) {
  return read_snapshot(snapshot_, slot_specs_, array, offset, bytes);
}

void ShardPiece::apply_locked(const RuleStep& step, std::size_t offset,
                              std::span<const float> gradient) {
  snapshot_.before_change(offset, offset + gradient.size_bytes());
  std::array<float*, kMostLargeSlots> slots{};
  for (std::size_t i = 0; i < large_slots_.size(); ++i) {
    slots[i] = large_slots_[i] + offset / sizeof(float);
  }
  apply_rule(variable_.rule, step,
             {.values = {reinterpret_cast<float*>(value_.data() + offset), gradient.size()},
              .slots = {slots.data(), large_slots_.size()},
              .gradient = gradient});
}

void ShardPiece::apply(const RuleStep& step, std::size_t offset,
                       std::span<const std::byte> gradient, std::span<std::byte> updated) {
  const float* const floats = reinterpret_cast<const float*>(gradient.data());
  const auto copy = updated.size() > kMostCached ? copy_past_caches : copy_through_caches;
  const auto part = [&](std::size_t begin, std::size_t end) {
    const std::size_t done = begin - offset, bytes = end - begin;
    apply_locked(step, begin, {floats + done / sizeof(float), bytes / sizeof(float)});
    if (!updated.empty()) copy(value_.subspan(begin, bytes), updated.subspan(done, bytes));
  };
  // Cut between regions: each is written at once.
  const std::size_t end = offset + gradient.size();
  const std::size_t first = offset / region_bytes_;
  const std::size_t last = (end + region_bytes_ - 1) / region_bytes_;
  pool_.for_ranges(std::int64_t(last - first), 1, [&](std::int64_t from, std::int64_t to) {
    write_regions(std::max(offset, (first + std::size_t(from)) * region_bytes_),
                  std::min(end, (first + std::size_t(to)) * region_bytes_), part);
  });
  watchers_.tell(*this);
}

void ShardPiece::apply_rows(const RuleStep& step, std::span<const std::int32_t> rows,
                            const float* gradient) {
  const std::int64_t row_size = std::int64_t(row_bytes_ / sizeof(float));
  const std::int64_t before = where_.first_row * row_size;
  std::unique_lock lock(regions_.front());
  // Rows are named as in the variable: the pointers stand where its row 0 would be. No element
  // before the piece is touched, since every row was checked to be in it.
  const auto shifted = [&](void* data) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): no pointer may stand before its array
    return reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(data) -
                                    std::uintptr_t(before) * sizeof(float));
  };
  std::array<float*, kMostLargeSlots> slots{};
  for (std::size_t i = 0; i < large_slots_.size(); ++i) slots[i] = shifted(large_slots_[i]);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kApplyGrain / std::max<std::int64_t>(row_size, 1));
  pool_.for_ranges(std::int64_t(rows.size()), grain, [&](std::int64_t first, std::int64_t last) {
    for (const std::int32_t row : rows.subspan(std::size_t(first), std::size_t(last - first))) {
      const std::size_t at = std::size_t(row - where_.first_row) * row_bytes_;
      snapshot_.before_change(at, at + row_bytes_);
    }
    apply_rule_to_rows(variable_.rule, step,
                       {.values = shifted(value_.data()),
                        .slots = {slots.data(), large_slots_.size()},
                        .ids = rows.subspan(std::size_t(first), std::size_t(last - first)),
                        .gradient = gradient + first * row_size,
                        .row_size = row_size});
  });
  lock.unlock();
  watchers_.tell(*this);
}

void ShardPiece::copy(std::size_t offset, std::span<std::byte> values) {
  for_regions(offset, offset + values.size(), [&](std::size_t begin, std::size_t end) {
    copy_bytes(values.data() + (begin - offset), value_.data() + begin, end - begin);
  });
}

void ShardPiece::copy_rows(std::span<const std::int32_t> rows, std::span<std::byte> values) {
  const std::lock_guard lock(regions_.front());
  if (row_bytes_ == 0) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t row = std::size_t(rows[i] - where_.first_row);
    copy_bytes(values.data() + i * row_bytes_, value_.data() + row * row_bytes_, row_bytes_);
  }
}

void ShardPiece::rewrite(Reading reading) {
  PACELINE_CHECK(variable_.dtype == DType::kFloat32);
  const float change = rewrites_++ % 2 == 0 ? kRewriteStep : -kRewriteStep;
  write_regions(0, value_.size(), [&](std::size_t begin, std::size_t end) {
    snapshot_.before_change(begin, end);
    const std::span values(reinterpret_cast<float*>(value_.data() + begin),
                           (end - begin) / sizeof(float));
    if (reading == Reading::kInPlace) return assign_changed(values, change);
    for (float& value : values) value += change;
  });
  watchers_.tell(*this);
}

std::span<std::byte> ShardPiece::array(std::size_t array) {
  return array == 0 ? value_ : slots_[array - 1].span();
}

std::size_t ShardPiece::array_bytes(std::size_t array) const {
  return array == 0 ? value_.size() : slots_[array - 1].size();
}

std::size_t ShardPiece::all_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < arrays(); ++i) bytes += array_bytes(i);
  return bytes;
}

void ShardPiece::write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  {
    const auto locks = lock_all();
    write_locked(index, offset, bytes);
  }
  watchers_.tell(*this);
}

void ShardPiece::write_locked(std::size_t index, std::size_t offset,
                              std::span<const std::byte> bytes) {
  // The value comes first: slots that do not follow begin anew.
  snapshot_.before_change(0, value_.size());
  if (index == 0 && offset == 0) reset_slots();
  std::deque<ChunkWriting> writing;
  for (std::uint64_t& version : versions_) writing.emplace_back(version);
  copy_bytes(array(index).data() + offset, bytes.data(), bytes.size());
  if (index == 0 && has_average(variable_)) {
    copy_bytes(slots_.back().data() + offset, bytes.data(), bytes.size());
  }
  if (index > 0 && int(index) - 1 == count_slot_) {
    std::int64_t count = 0;
    std::memcpy(&count, slots_[index - 1].data(), sizeof(count));
    count_ = count;
  }
}

void ShardPiece::copy_all(std::span<std::byte> bytes) {
  const auto locks = lock_all();
  if (count_slot_ >= 0) {
    const std::int64_t count = count_;
    std::memcpy(slots_[std::size_t(count_slot_)].data(), &count, sizeof(count));
  }
  for (std::size_t i = 0; i < arrays(); ++i) {
    const std::span<std::byte> from = array(i);
    copy_bytes(bytes.data(), from.data(), from.size());
    bytes = bytes.subspan(from.size());
  }
}

Shard::Shard(std::vector<VariableSpec> variables, std::vector<Piece> pieces, int ps,
             ApplyPool& pool)
    : variables_(std::move(variables)),
      pieces_(std::move(pieces)),
      ps_(ps),
      positions_(pieces_.size(), -1) {
  check_can_hold(variables_, pieces_, ps);
  const ShardLayout layout = shard_layout(variables_, pieces_, ps);
  values_ = SharedMemory::create(layout.bytes);
  for (const Piece& piece : pieces_) {
    if (piece.ps != ps) continue;
    positions_[piece.id] = int(local_.size());
    const VariableSpec& variable = variables_[std::size_t(piece.variable)];
    const std::size_t bytes = piece_bytes(variable, piece);
    offsets_.push_back(layout.offsets[piece.id]);
    std::byte* const start = values_->bytes().data();
    const std::span versions(reinterpret_cast<std::uint64_t*>(start + layout.versions[piece.id]),
                             version_count(bytes));
    local_.push_back(std::make_unique<ShardPiece>(
        variable, piece, std::span(start + layout.offsets[piece.id], bytes), versions, pool));
    bytes_ += local_.back()->all_bytes();
  }
}

std::size_t Shard::position(std::uint32_t id) const {
  if (id >= positions_.size() || positions_[id] < 0) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[ps] piece {} is not here", id));
  }
  return std::size_t(positions_[id]);
}

}  // namespace paceline
