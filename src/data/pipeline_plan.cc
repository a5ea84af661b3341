#include "data/pipeline_plan.h"

#include <algorithm>

namespace paceline {

struct RecordCache::Kept {
  std::vector<std::uint8_t> bytes;
  ImageSize size;
  PixelLayout layout;
  std::int32_t label;
};

RecordCache::RecordCache(std::int64_t records, std::int64_t most_bytes)
    : most_bytes_(most_bytes), kept_(std::size_t(records)) {}

RecordCache::~RecordCache() {
  for (const auto& each : kept_) delete each.load();
}

bool RecordCache::find(Example& to) const {
  const Kept* const kept = kept_[std::size_t(to.index)].load(std::memory_order_acquire);
  if (kept == nullptr) return false;
  to.bytes = kept->bytes;
  to.size = kept->size;
  to.layout = kept->layout;
  to.label = kept->label;
  return true;
}

void RecordCache::keep(const Example& example) {
  const auto bytes = std::int64_t(example.bytes.size() + sizeof(Kept));
  if (bytes_.fetch_add(bytes) + bytes > most_bytes_) {
    bytes_ -= bytes;
    return;
  }
  auto kept = std::make_unique<const Kept>(Kept{
      {example.bytes.begin(), example.bytes.end()}, example.size, example.layout, example.label});
  const Kept* none = nullptr;
  if (kept_[std::size_t(example.index)].compare_exchange_strong(none, kept.get(),
                                                                std::memory_order_release)) {
    ++records_;
    static_cast<void>(kept.release());
  } else {
    bytes_ -= bytes;  // another thread was first
  }
}

double RecordCache::fill() const {
  return std::max(double(bytes_.load()) / double(std::max<std::int64_t>(most_bytes_, 1)),
                  double(records_.load()) / double(std::max<std::size_t>(kept_.size(), 1)));
}

}  // namespace paceline
