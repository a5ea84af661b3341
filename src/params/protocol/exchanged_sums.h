// Sums of numbers that the members of an all-reduce exchange in the middle of a step: a plain state
// machine. The numbers belong to an attempt at a step. An attempt ends when the members change.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace paceline {

class ExchangedSums {
 public:
  ExchangedSums(int worker, int workers) : worker_(worker), given_(std::size_t(workers)) {}

  /// Gives this worker's next numbers for the attempt. Returns their index in the attempt, which
  /// counts from 0.
  std::uint32_t give(std::uint64_t attempt, std::span<const double> numbers);
  /// Takes the numbers of another worker, which may be one exchange ahead of this worker. Throws
  /// kDataLoss when the other worker is further ahead.
  void take(int worker, std::uint64_t attempt, std::uint32_t which,
            std::span<const double> numbers);
  /// The index of the last numbers that this worker has given in the attempt.
  std::uint32_t which() const { return which_; }
  /// True when all members have given the numbers with the index which().
  bool whole(std::span<const std::int32_t> members) const;
  /// Writes to `sums` the sums of all members' numbers, added in the order of the members. Throws
  /// kDataLoss when the members have not given equally many numbers.
  void sum(std::span<const std::int32_t> members, std::span<double> sums) const;

 private:
  struct Numbers {
    std::uint64_t attempt = 0;
    std::uint32_t which = 0;
    std::vector<double> numbers;
  };
  const Numbers* of(int worker) const;
  static void keep(std::deque<Numbers>& given, Numbers numbers);

  const int worker_;
  /// By worker: its last lists of numbers, two at most, all of the same attempt.
  std::vector<std::deque<Numbers>> given_;
  std::uint64_t attempt_ = 0;  // 0: no attempt
  std::uint32_t which_ = 0;
};

}  // namespace paceline
