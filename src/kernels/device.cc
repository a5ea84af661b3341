#include "kernels/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_library.h"
#include "kernels/device_kind.h"
#include "kernels/host_device.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/sim/sim_device.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// The naive kernels are there for what the fast ones lack.
std::unique_ptr<Device> make_cpu(const DeviceOptions& options, Clock&) {
  std::vector<KernelTable> tables;
  tables.push_back(cpu_kernels());
  tables.push_back(naive_kernels());
  return std::make_unique<HostDevice>(options, std::move(tables));
}

std::unique_ptr<Device> make_sim(const DeviceOptions& options, Clock& clock) {
  return std::make_unique<SimDevice>(options, clock, make_cpu(options, clock));
}

std::unique_ptr<Device> make_cuda(const DeviceOptions& options, Clock& clock) {
  return std::make_unique<CudaDevice>(cuda_calls(), options.index, make_cpu(options, clock),
                                      CudaOptions{.waits = options.cuda_check,
                                                  .tf32 = options.cuda_tf32,
                                                  .deterministic = options.cuda_deterministic});
}

std::unique_ptr<Device> make_naive(const DeviceOptions& options, Clock&) {
  std::vector<KernelTable> tables;
  tables.push_back(naive_kernels());
  return std::make_unique<HostDevice>(options, std::move(tables));
}

constexpr DeviceKind kDevices[] = {
    {.name = "cpu", .shares_cores = true, .meets_roof = true, .make = make_cpu},
    {.name = "cuda", .needs_hardware = true, .is_numbered = true, .make = make_cuda},
    {.name = "sim", .is_simulated = true, .is_numbered = true, .make = make_sim},
    {.name = "naive", .is_oracle = true, .make = make_naive},
};

}  // namespace

std::span<const DeviceKind> device_kinds() { return kDevices; }

const DeviceKind* find_device_kind(std::string_view name) {
  const auto* const kind = std::ranges::find(kDevices, name, &DeviceKind::name);
  return kind == std::end(kDevices) ? nullptr : kind;
}

const DeviceKind& device_kind(std::string_view name) {
  if (const DeviceKind* const kind = find_device_kind(name)) return *kind;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("--device: cpu, cuda, sim or naive, not {}", name));
}

std::unique_ptr<Device> make_device(const DeviceOptions& options, Clock& clock) {
  if (options.threads < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--threads: at least 1, not {}", options.threads));
  }
  return device_kind(options.kind).make(options, clock);
}

}  // namespace paceline
