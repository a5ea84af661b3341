// A queue that allocates only while it grows.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace paceline {

/// A queue in the order in which things were pushed. Not thread-safe.
template <typename T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const T& operator[](std::size_t i) const { return slots_[(first_ + i) % slots_.size()]; }
  T& operator[](std::size_t i) { return slots_[(first_ + i) % slots_.size()]; }

  const T& front() const { return slots_[first_]; }
  T& front() { return slots_[first_]; }

  void push(T item) {
    if (size_ == slots_.size()) grow();
    slots_[(first_ + size_++) % slots_.size()] = std::move(item);
  }

  T pop() {
    T item = std::exchange(slots_[first_], T{});
    first_ = (first_ + 1) % slots_.size();
    --size_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());
    for (std::size_t i = 0; i < size_; ++i)
      larger[i] = std::move(slots_[(first_ + i) % slots_.size()]);
    slots_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace paceline
