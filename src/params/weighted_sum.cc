#include "params/weighted_sum.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace paceline {
namespace {

// The number of elements that are added at a time. It is constant, so that the compiler uses
// vectors.
constexpr std::size_t kTurn = 16;
// A sum of at least this length does not stay in the caches, so its cache lines are written without
// being read first.
constexpr std::size_t kStreamedFrom = std::size_t(1) << 20;

struct Turn {
  float numbers[kTurn];

  void set(float weight, const float* values) {
    for (std::size_t k = 0; k < kTurn; ++k) numbers[k] = weight * values[k];
  }
  void add(float weight, const float* values) {
    for (std::size_t k = 0; k < kTurn; ++k) numbers[k] += weight * values[k];
  }
  void store(float* to) const { std::memcpy(to, numbers, sizeof numbers); }
  void stream(float* to) const {
#ifdef __SSE2__
    for (std::size_t k = 0; k < kTurn; k += 4) _mm_stream_ps(to + k, _mm_loadu_ps(numbers + k));
#else
    store(to);
#endif
  }
};

// Returns how many of these elements are in whole turns.
std::size_t in_turns(std::size_t count) { return count / kTurn * kTurn; }

bool begins_at_line(const float* numbers) {
  return reinterpret_cast<std::uintptr_t>(numbers) % sizeof(Turn) == 0;
}

// Makes the streamed writes visible before everything that follows, such as the frame that
// announces them.
void end_streaming() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

}  // namespace

void scale(float weight, std::span<const float> values, float* sum) {
  const std::size_t whole = in_turns(values.size());
  for (std::size_t i = 0; i < whole; i += kTurn) {
    Turn turn;
    turn.set(weight, values.data() + i);
    turn.store(sum + i);
  }
  for (std::size_t i = whole; i < values.size(); ++i) sum[i] = weight * values[i];
}

void add_scaled(const float* before, float weight, std::span<const float> values, float* sum) {
  const std::size_t whole = in_turns(values.size());
  for (std::size_t i = 0; i < whole; i += kTurn) {
    Turn turn;
    std::memcpy(turn.numbers, before + i, sizeof turn.numbers);
    turn.add(weight, values.data() + i);
    turn.store(sum + i);
  }
  for (std::size_t i = whole; i < values.size(); ++i) sum[i] = before[i] + weight * values[i];
}

void weighted_sum(std::span<const float> weights, std::span<const float* const> inputs,
                  std::size_t first, std::span<float> sum) {
  const bool streams = sum.size() >= kStreamedFrom && begins_at_line(sum.data());
  const std::size_t whole = in_turns(sum.size());
  for (std::size_t i = 0; i < whole; i += kTurn) {
    Turn turn;
    turn.set(weights[0], inputs[0] + first + i);
    for (std::size_t k = 1; k < inputs.size(); ++k) turn.add(weights[k], inputs[k] + first + i);
    if (streams) {
      turn.stream(sum.data() + i);
    } else {
      turn.store(sum.data() + i);
    }
  }
  if (streams) end_streaming();
  for (std::size_t i = whole; i < sum.size(); ++i) {
    sum[i] = weights[0] * inputs[0][first + i];
    for (std::size_t k = 1; k < inputs.size(); ++k) sum[i] += weights[k] * inputs[k][first + i];
  }
}

void sum_rows(std::span<const WeightedRows> members, std::size_t row,
              std::vector<std::int32_t>& ids, std::vector<float>& rows) {
  ids.clear();
  for (const WeightedRows& member : members)
    ids.insert(ids.end(), member.ids.begin(), member.ids.end());
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  rows.assign(ids.size() * row, 0.0f);
  for (const WeightedRows& member : members) {
    for (std::size_t i = 0; i < member.ids.size(); ++i) {
      const auto at = std::size_t(std::ranges::lower_bound(ids, member.ids[i]) - ids.begin());
      float* const sum = rows.data() + at * row;
      add_scaled(sum, member.weight, {member.rows + i * row, row}, sum);
    }
  }
}

}  // namespace paceline
