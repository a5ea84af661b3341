// The kinds of devices, and the traits by which all other code asks about one.
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace paceline {

class Clock;
class Device;
struct DeviceOptions;

/// A line of the table in device.cc.
struct DeviceKind {
  std::string_view name;      // "cpu"
  bool shares_cores = false;  // among its tasks and towers, each of which needs one
  bool is_simulated = false;  // its time follows from DeviceOptions, and it computes where asked to
  bool meets_roof = false;    // the roof of this machine bounds it
  bool needs_hardware = false;  // which a machine may lack
  bool is_numbered = false;     // a machine has several of them, by index
  bool is_oracle = false;       // for tests: no flag names it
  /// How long its kernels take can be known before they run.
  bool is_predicted() const { return is_simulated || meets_roof; }
  std::unique_ptr<Device> (*make)(const DeviceOptions& options, Clock& clock) = nullptr;
};

/// All kinds; the first is the default.
std::span<const DeviceKind> device_kinds();
/// Null: there is none of this name.
const DeviceKind* find_device_kind(std::string_view name);
/// Throws kInvalidArgument naming --device.
const DeviceKind& device_kind(std::string_view name);

}  // namespace paceline
