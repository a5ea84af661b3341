#include "params/protocol/exchanged_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

// Another worker is ahead of this one by one exchange at most, since it then waits for this
// worker's next numbers.
constexpr std::size_t kMostExchangesKept = 2;

}  // namespace

std::uint32_t ExchangedSums::give(std::uint64_t attempt, std::span<const double> numbers) {
  which_ = std::exchange(attempt_, attempt) == attempt ? which_ + 1 : 0;
  keep(given_[std::size_t(worker_)],
       {attempt, which_, std::vector<double>(numbers.begin(), numbers.end())});
  return which_;
}

void ExchangedSums::take(int worker, std::uint64_t attempt, std::uint32_t which,
                         std::span<const double> numbers) {
  const bool present = attempt == attempt_ && which > which_ + 1;
  if (present) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] worker:{} gives its sums {} of a step after {}", worker,
                            which, which_));
  }
  keep(given_[std::size_t(worker)],
       {attempt, which, std::vector<double>(numbers.begin(), numbers.end())});
}

void ExchangedSums::keep(std::deque<Numbers>& given, Numbers numbers) {
  if (!given.empty() && given.back().attempt != numbers.attempt) given.clear();
  if (given.size() == kMostExchangesKept) given.pop_front();
  given.push_back(std::move(numbers));
}

const ExchangedSums::Numbers* ExchangedSums::of(int worker) const {
  for (const Numbers& numbers : given_[std::size_t(worker)]) {
    if (numbers.attempt == attempt_ && numbers.which == which_) return &numbers;
  }
  return nullptr;
}

bool ExchangedSums::whole(std::span<const std::int32_t> members) const {
  return std::ranges::all_of(members,
                             [this](std::int32_t member) { return of(member) != nullptr; });
}

void ExchangedSums::sum(std::span<const std::int32_t> members, std::span<double> sums) const {
  std::ranges::fill(sums, 0.0);
  for (const std::int32_t member : members) {
    const std::vector<double>& numbers = of(member)->numbers;
    if (numbers.size() != sums.size()) {
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("[all-reduce] worker:{} gives {} sums in the middle of a step, and "
                              "worker:{} {}",
                              member, numbers.size(), worker_, sums.size()));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += numbers[i];
  }
}

}  // namespace paceline
