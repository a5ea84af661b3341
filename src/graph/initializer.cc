// Element i of a variable is drawn from block i/4 of the random stream of (seed, name). So its
// value depends neither on the order of filling nor on the machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {
namespace {

std::pair<float, float> uniform_bounds(const Initializer& initializer, const Shape& shape) {
  if (!initializer.glorot) return {initializer.a, initializer.b};
  if (shape.rank() == 0) return {-std::sqrt(3.0f), std::sqrt(3.0f)};
  const bool windows = shape.rank() == 4;  // weights of conv2d
  const int out = windows ? 0 : shape.rank() - 1;
  const int in = windows ? 1 : std::max(shape.rank() - 2, 0);
  double rest = 1;
  for (int i = 0; i < shape.rank(); ++i) rest *= i == in || i == out ? 1 : double(shape[i]);
  const double fan_out = double(shape[out]) * rest, fan_in = double(shape[in]) * rest;
  const float bound = float(std::sqrt(6.0 / std::max(1.0, fan_in + fan_out)));
  return {-bound, bound};
}

void fill_uniform(std::span<float> values, float low, float high, std::uint64_t key) {
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const PhiloxBlock block = philox(key, i / 4, 0);
    for (std::size_t k = 0; k < std::min<std::size_t>(4, values.size() - i); ++k) {
      values[i + k] = to_uniform(block[k], low, high);
    }
  }
}

// Words 0 and 1 of a block make the first two of its four numbers, words 2 and 3 the other two.
// Each `attempt` has blocks of its own.
double normal_number(std::uint64_t key, std::size_t element, std::uint64_t attempt) {
  const PhiloxBlock block = philox(key, element / 4, attempt);
  const std::size_t pair = element % 4 / 2 * 2;
  const auto [first, second] = to_normal_pair<double>(block[pair], block[pair + 1]);
  return element % 2 == 0 ? first : second;
}

void fill_normal(std::span<float> values, const Initializer& initializer, double bound,
                 std::uint64_t key) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    double number = normal_number(key, i, 0);
    for (std::uint64_t attempt = 1; std::abs(number) > bound; ++attempt) {
      number = normal_number(key, i, attempt);
    }
    values[i] = float(initializer.a + initializer.b * number);
  }
}

}  // namespace

void Initializer::fill(std::span<float> values, const Shape& shape, std::uint64_t seed,
                       std::string_view name) const {
  check_element_count(shape, values.size());
  const std::uint64_t key = random_key(seed, name);
  switch (kind) {
    case Kind::kConstant:
      std::ranges::fill(values, a);
      return;
    case Kind::kUniform: {
      const auto [low, high] = uniform_bounds(*this, shape);
      return fill_uniform(values, low, high, key);
    }
    case Kind::kNormal:
      return fill_normal(values, *this, HUGE_VAL, key);
    case Kind::kTruncatedNormal:
      return fill_normal(values, *this, 2, key);
    case Kind::kValues:
      std::ranges::copy(given.data<float>(), values.begin());
      return;
  }
}

}  // namespace paceline
