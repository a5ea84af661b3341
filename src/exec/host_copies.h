// Copies of a device's memory that the host reads.
#pragma once

#include <vector>

#include "kernels/device.h"
#include "paceline/tensor.h"

namespace paceline {

class HostCopies {
 public:
  /// Returns a view that the host can read: `view` itself where `device` computes in host memory,
  /// else a copy that has its values once a refresh was made. It is valid as long as this object.
  TensorView of(const TensorView& view, Device& device);
  /// Queues a copy of every view on the device that has them. Allocates nothing.
  void refresh(Device& device) const;

 private:
  struct Copy {
    TensorView from;
    Buffer to;
  };
  std::vector<Copy> copies_;
};

}  // namespace paceline
