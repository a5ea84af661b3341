#include "kernels/device.h"

#include <fmt/format.h>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/host_device.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/sim/sim_device.h"
#include "paceline/error.h"

namespace paceline {

std::unique_ptr<Device> make_device(const DeviceOptions& options, Clock& clock) {
  if (options.threads < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--threads: at least 1, not {}", options.threads));
  }
  std::vector<KernelTable> tables;
  if (options.kind == "cpu" || options.kind == "sim") tables.push_back(cpu_kernels());
  tables.push_back(naive_kernels());
  if (options.kind == "cpu" || options.kind == "naive") {
    return std::make_unique<HostDevice>(options, std::move(tables));
  }
  if (options.kind == "sim") {
    return std::make_unique<SimDevice>(options, clock,
                                       std::make_unique<HostDevice>(options, std::move(tables)));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--device: cpu, sim or naive, not {}", options.kind));
}

}  // namespace paceline
