// The kinds of devices, and the traits by which other code distinguishes them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace paceline {

class Clock;
class Device;
struct DeviceOptions;

/// A row of the table in device.cc.
struct DeviceKind {
  std::string_view name;         // "cpu"
  bool shares_cores = false;     // its tasks and towers share this machine's cores
  bool is_simulated = false;     // its time follows from DeviceOptions, and it computes if asked to
  bool meets_roof = false;       // this machine's roof bounds it
  bool needs_hardware = false;   // a machine may lack its hardware
  bool has_own_roof = false;     // paceline roof --device measures what it can do
  bool is_numbered = false;      // a machine may have several, by index
  bool biases_products = false;  // its products add a bias and a relu (RewriteOptions)
  bool is_oracle = false;        // for tests only: no flag names it
  /// True if its kernels' time can be known before they run. The time on a device with a roof of
  /// its own can be known from a file with that roof.
  bool is_predicted() const { return is_simulated || meets_roof; }
  std::unique_ptr<Device> (*make)(const DeviceOptions& options, Clock& clock) = nullptr;
};

/// All kinds; the first is the default.
std::span<const DeviceKind> device_kinds();
/// Returns null if no kind has this name.
const DeviceKind* find_device_kind(std::string_view name);
/// Throws kInvalidArgument naming --device.
const DeviceKind& device_kind(std::string_view name);

}  // namespace paceline
