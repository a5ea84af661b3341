// Ports for jobs to which their launcher gives none.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/philox.h"

namespace paceline {

/// The ports for jobs, all below those that systems choose for outgoing connections (32768 and up
/// on Linux).
constexpr int kFirstLaunchPort = 16384, kLaunchPorts = 16384;

/// Returns the port for the job of that name. Jobs with other names mostly get other ports.
inline std::uint16_t launch_port(std::string_view job) {
  return std::uint16_t(kFirstLaunchPort + int(random_key(0, job) % kLaunchPorts));
}

}  // namespace paceline
