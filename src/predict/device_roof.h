// The best rates of a device that has memory of its own, such as a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "kernels/device.h"

namespace paceline {

/// Numbers of 0 are not known.
struct DeviceRoof {
  std::string name;                 // of the hardware, as its driver gives it; else "sim:0"
  double flops_per_s = 0;           // products of float32
  double bytes_per_s = 0;           // its memory, in an element-wise op over large arrays
  double launch_s = 0;              // of each of many kernels that have hardly any work
  double upload_bytes_per_s = 0;    // from the host's memory, pinned if the device pins it
  double download_bytes_per_s = 0;  // to the host's memory
  bool is_known() const { return flops_per_s > 0; }

  bool operator==(const DeviceRoof&) const = default;
};

/// The sizes with which each rate is measured. Each begins at the first size and doubles until one
/// run takes the patience, or the last size is reached; the last run counts.
struct DeviceRoofSizes {
  std::int64_t least_side = 256, most_side = 8192;  // of the square matrices of a product
  std::int64_t least_elements = 1 << 16, most_elements = 1 << 26;  // of an element-wise op
  std::int64_t least_launches = 16, most_launches = 4096;
  /// Copies. The first size is the least that devices pin.
  std::size_t least_bytes = std::size_t{4} << 20, most_bytes = std::size_t{256} << 20;
  Duration patience = std::chrono::milliseconds(20);
};

/// Measures by the kernels and copies of the device alone, which nobody else should use meanwhile.
/// If the device's memory is too small for a size, the size before it counts. Throws kUnavailable
/// if the first size does not fit, and what the device's kernels throw.
DeviceRoof measure_device_roof(Device& device, const Clock& clock,
                               const DeviceRoofSizes& sizes = {});

}  // namespace paceline
