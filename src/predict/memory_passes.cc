#include "predict/memory_passes.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

namespace paceline {
namespace {

constexpr std::size_t kDefaultCache = std::size_t(32) << 20;
constexpr std::size_t kLeastArray = std::size_t(128) << 20, kMostArray = std::size_t(512) << 20;
// The number of floats in one turn of a loop. It is a constant, so that the compiler uses vectors.
constexpr std::size_t kTurn = 64;

}  // namespace

std::size_t cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) +
                       "/size");
    std::size_t kib = 0;
    if (file >> kib) largest = std::max(largest, kib << 10);
  }
  return largest > 0 ? largest : kDefaultCache;
}

std::size_t uncached_bytes() {
  return round_up(std::clamp(4 * cache_bytes(), kLeastArray, kMostArray), 1 << 20);
}

MemoryPasses::MemoryPasses(int threads)
    : pool_(std::make_unique<ThreadPool>(threads)), own_(uncached_bytes()), first_(own_.span()) {
  write();  // touches the pages first
}

MemoryPasses::MemoryPasses(int threads, std::span<std::byte> memory)
    : pool_(std::make_unique<ThreadPool>(threads)), first_(memory.first(uncached_bytes())) {
  write();
}

template <typename Part>
void MemoryPasses::in_parts(const Part& part) {
  const auto floats = std::int64_t(first_.size() / sizeof(float));
  const std::int64_t turns = floats / std::int64_t(kTurn), parts = 4 * pool_->threads();
  auto tile = [&](std::int64_t i) {
    const auto begin = std::size_t(turns * i / parts) * kTurn;
    const auto end = std::size_t(turns * (i + 1) / parts) * kTurn;
    part(begin, end - begin);
  };
  pool_->run_tiles(parts, TileFunction(tile));
}

void MemoryPasses::read() {
  std::atomic<std::uint32_t> sum{0};
  const auto* values = reinterpret_cast<const std::uint32_t*>(first_.data());
  in_parts([&](std::size_t begin, std::size_t count) {
    std::uint32_t sums[kTurn] = {};
    for (std::size_t i = begin; i < begin + count; i += kTurn) {
      for (std::size_t k = 0; k < kTurn; ++k) sums[k] += values[i + k];
    }
    for (const std::uint32_t part : sums) sum += part;
  });
  sum_ = sum.load();
}

void MemoryPasses::write() {
  auto* values = reinterpret_cast<float*>(first_.data());
  in_parts([&](std::size_t begin, std::size_t count) {
    std::memset(values + begin, 0, count * sizeof(float));
  });
}

void MemoryPasses::copy() {
  if (second_.size() == 0) second_ = Buffer(first_.size());
  const auto* from = reinterpret_cast<const float*>(first_.data());
  auto* to = reinterpret_cast<float*>(second_.data());
  in_parts([&](std::size_t begin, std::size_t count) {
    std::memcpy(to + begin, from + begin, count * sizeof(float));
  });
}

void MemoryPasses::update() {
  auto* values = reinterpret_cast<float*>(first_.data());
  in_parts([&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; i += kTurn) {
      for (std::size_t k = 0; k < kTurn; ++k) values[i + k] = 0.5f * values[i + k] + 1.0f;
    }
  });
}

}  // namespace paceline
