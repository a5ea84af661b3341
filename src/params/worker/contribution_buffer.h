// The memory in which a worker's contributions wait to be taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/memory/shared_memory.h"
#include "paceline/tensor.h"
#include "params/wakeup.h"

namespace paceline {

/// A contribution to one variable. In memory of this process it is free again when every frame of
/// it was sent; in memory that ps tasks of this host read, when each has applied it.
struct ContributionBuffer {
  TensorView values;  // as large as the largest plan wants it
  std::vector<std::int32_t> ids;
  std::atomic<int> in_flight{0};
  Wakeup* wakeup = nullptr;

  /// The memory of this worker that it lies in, and its first byte there; none when it is not
  /// shared.
  struct Place {
    std::uint32_t memory = 0;
    std::size_t offset = 0;
  };
  std::optional<Place> shared;
  /// The parts that rounding has left out so far, by element of the variable, with error feedback.
  std::vector<float> errors;
  /// The largest numbers as they travel, with --top-k: those of a frame where the frame's numbers
  /// begin in `values`. Most of it is never touched.
  std::unique_ptr<std::byte[]> largest;
  /// Returns null when no errors are kept.
  float* errors_at(std::size_t element) { return errors.empty() ? nullptr : &errors[element]; }

  bool fits(std::int64_t elements) const {
    return values.data != nullptr && values.shape.elements() >= elements;
  }
  void use_own_memory(DType dtype, const Shape& shape);
  void use(const std::shared_ptr<SharedMemory>& memory, Place place, DType dtype,
           const Shape& shape);
  /// It is given to Connection::send; the context is the buffer.
  static void sent(void* context);

 private:
  std::shared_ptr<const void> owner_;
};

}  // namespace paceline
