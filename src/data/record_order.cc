// The order is decided before any record is read. So two numbers, an epoch and a record, give a
// place in the data, a shuffle pool needs no memory for records, and a source only has to read any
// record by its number.
#include "data/record_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random_order.h"

namespace paceline {

RecordOrder::RecordOrder(OrderOptions options)
    : options_(std::move(options)),
      file_key_(random_key(options_.seed, "order of files")),
      pool_key_(random_key(options_.seed, fmt::format("shuffle pool {}", options_.part))) {
  for (const std::int64_t records : options_.files) {
    first_.push_back(all_);
    all_ += records;
  }
  begin(0);
}

std::int64_t RecordOrder::size() const {
  return (all_ - options_.part + options_.parts - 1) / options_.parts;
}

void RecordOrder::begin(std::int64_t epoch) {
  epoch_ = epoch;
  place_ = drawn_ = 0;
  shard_left_ = size();
  pool_.clear();
  next_file_ = turn_ = 0;
  open_.clear();
  if (options_.interleave == 0) return;
  file_order_.resize(first_.size());
  std::iota(file_order_.begin(), file_order_.end(), 0);
  shuffle(file_order_, random_key(file_key_, fmt::format("epoch {}", epoch)));
  open_.resize(std::min(std::size_t(options_.interleave), first_.size()));
  std::erase_if(open_, [&](File& file) { return !open_file(file); });
}

bool RecordOrder::open_file(File& into) {
  while (next_file_ < file_order_.size()) {
    const auto file = std::size_t(file_order_[next_file_++]);
    if (options_.files[file] == 0) continue;
    into = {first_[file], options_.files[file]};
    return true;
  }
  return false;
}

std::int64_t RecordOrder::next_interleaved() {
  File& file = open_[turn_];
  const std::int64_t index = file.first++;
  if (--file.left > 0 || open_file(file)) {
    turn_ = (turn_ + 1) % open_.size();
    return index;
  }
  open_.erase(open_.begin() + std::ptrdiff_t(turn_));
  if (turn_ == open_.size()) turn_ = 0;
  return index;
}

RecordOrder::Next RecordOrder::next_of_shard() {
  --shard_left_;
  while (true) {
    const std::int64_t place = place_++;
    const std::int64_t index = options_.interleave == 0 ? place : next_interleaved();
    if (place % options_.parts == options_.part) return {index, place};
  }
}

void RecordOrder::fill_pool() {
  while (shard_left_ > 0 && std::int64_t(pool_.size()) < options_.pool) {
    pool_.push_back(next_of_shard());
  }
}

RecordOrder::Next RecordOrder::next() {
  if (options_.pool == 0) return next_of_shard();
  fill_pool();
  const std::int64_t drawn = random_below(std::int64_t(pool_.size()), pool_key_, drawn_++, epoch_);
  std::swap(pool_[std::size_t(drawn)], pool_.back());
  const Next next = pool_.back();
  pool_.pop_back();
  return next;
}

std::optional<double> RecordOrder::pool_fill() const {
  if (options_.pool == 0) return {};
  return double(pool_.size()) / double(options_.pool);
}

}  // namespace paceline
