#include "base/open_dimension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::array<std::int64_t, 16> kPrimes = {94331, 94543, 94771, 95153, 95369, 95581,
                                                  95801, 96157, 96377, 96589, 96821, 97151,
                                                  97367, 97579, 97813, 98179};
// The most that a shape function may add to an open dimension or take from it, for example for the
// margin of a window.
constexpr std::int64_t kMostAdded = 64;

/// Names are only added, so a thread that has read `count` may read that many names without the
/// lock.
struct Names {
  std::mutex mutex;
  std::array<std::string, kPrimes.size()> by_prime;
  std::atomic<std::size_t> count{0};
};

Names& names() {
  static Names* const names = new Names;  // never destroyed, since a graph may outlive it
  return *names;
}

/// A dimension: `factor` times the open dimensions in `open`, plus `added`.
struct Term {
  std::int64_t factor = 1, added = 0;
  // The indices of the primes; a prime that is a factor twice appears twice.
  std::vector<std::size_t> open;
};

Term term_of(std::int64_t dimension) {
  Term term{.factor = dimension, .added = 0, .open = {}};
  if (dimension < kPrimes[0] - kMostAdded) return term;
  const std::size_t count = names().count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    for (; term.factor % kPrimes[i] == 0; term.factor /= kPrimes[i]) term.open.push_back(i);
  }
  if (!term.open.empty()) return term;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t added = dimension - kPrimes[i];
    if (std::abs(added) <= kMostAdded) return {.factor = 1, .added = added, .open = {i}};
  }
  return term;
}

}  // namespace

std::int64_t open_dimension(std::string_view name) {
  if (name.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "[graph] an open dimension needs a name");
  }
  Names& known = names();
  const std::lock_guard lock(known.mutex);
  const std::size_t count = known.count;
  for (std::size_t i = 0; i < count; ++i) {
    if (known.by_prime[i] == name) return kPrimes[i];
  }
  if (count == kPrimes.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] '{}' is one open dimension too many: the graphs of a process "
                            "have at most {}: {}",
                            name, count, fmt::join(known.by_prime, ", ")));
  }
  known.by_prime[count] = name;
  known.count.store(count + 1, std::memory_order_release);
  return kPrimes[count];
}

std::string open_name(std::int64_t dimension) {
  const Term term = term_of(dimension);
  const bool alone = term.open.size() == 1 && term.factor == 1 && term.added == 0;
  return alone ? names().by_prime[term.open[0]] : "";
}

bool is_open(std::int64_t dimension) { return !term_of(dimension).open.empty(); }

bool is_open_product(std::int64_t dimension) {
  const Term term = term_of(dimension);
  return !term.open.empty() && term.added == 0;
}

std::vector<std::string> open_names(std::int64_t dimension) {
  std::vector<std::string> found;
  for (const std::size_t open : term_of(dimension).open) {
    if (found.empty() || found.back() != names().by_prime[open]) {
      found.push_back(names().by_prime[open]);
    }
  }
  return found;
}

std::string dimension_text(std::int64_t dimension) {
  const Term term = term_of(dimension);
  if (term.open.empty()) return fmt::format("{}", dimension);
  std::string text = term.factor == 1 ? "" : fmt::format("{}·", term.factor);
  for (std::size_t i = 0; i < term.open.size(); ++i) {
    if (i > 0) text += "·";
    text += names().by_prime[term.open[i]];
  }
  return term.added == 0 ? text : fmt::format("{}{:+}", text, term.added);
}

std::int64_t sized(std::int64_t dimension, const OpenSizes& sizes) {
  const Term term = term_of(dimension);
  std::int64_t size = term.factor;
  for (const std::size_t open : term.open) {
    const auto found = sizes.find(names().by_prime[open]);
    size *= found != sizes.end() ? found->second : kPrimes[open];
  }
  return size + term.added;
}

}  // namespace paceline
