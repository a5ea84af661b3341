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
#include "kernels/kernel_table.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/sim/sim_device.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// A device that computes on this machine's cores. A node's kernel comes from the first of the
/// device's tables that has one for it.
class HostDevice : public Device {
 public:
  HostDevice(const DeviceOptions& options, std::vector<KernelTable> tables);

  std::string name() const override;
  std::unique_ptr<Kernel> make_kernel(const Node& node) override;
  Buffer allocate(std::size_t bytes) override { return Buffer(bytes); }
  ThreadPool& threads() override { return pool_; }

 private:
  const std::string kind_;
  const int index_;
  const std::vector<KernelTable> tables_;
  ThreadPool pool_;
};

class PoolThreads : public KernelThreads {
 public:
  explicit PoolThreads(ThreadPool& pool) : pool_(pool) {}
  int count() const override { return pool_.threads(); }
  void run(std::int64_t n, std::int64_t grain, void* object,
           void (*call)(void*, std::int64_t, std::int64_t)) override {
    pool_.parallel_for(n, grain,
                       [&](std::int64_t begin, std::int64_t end) { call(object, begin, end); });
  }

 private:
  ThreadPool& pool_;
};

class UserKernel : public Kernel {
 public:
  UserKernel(const Node& node, ThreadPool& pool) : node_(node), threads_(pool) {}
  void run(const KernelCall& call) override {
    KernelCall threaded = call;
    threaded.threads = &threads_;
    node_.op().kernel(node_, threaded);
  }

 private:
  const Node& node_;
  PoolThreads threads_;
};

HostDevice::HostDevice(const DeviceOptions& options, std::vector<KernelTable> tables)
    : kind_(options.kind),
      index_(options.index),
      tables_(std::move(tables)),
      pool_(options.threads) {}

std::string HostDevice::name() const { return fmt::format("{}:{}", kind_, index_); }

std::unique_ptr<Kernel> HostDevice::make_kernel(const Node& node) {
  if (node.op().kernel) return std::make_unique<UserKernel>(node, pool_);
  for (const KernelTable& table : tables_) {
    const KernelTable::Factory factory = table.find(node.op().name);
    if (factory == nullptr) continue;
    if (std::unique_ptr<Kernel> kernel = factory(node, pool_)) return kernel;
  }
  const DType dtype = node.outputs().empty() ? DType::kFloat32 : node.outputs()[0].dtype;
  throw Error(ErrorCode::kNotFound, fmt::format("[{}] has no kernel on {} for {}", node.op().name,
                                                kind_, name_of(dtype)));
}

// Naive kernels compute the ops and types that have no fast kernel.
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
    {.name = "cuda",
     .needs_hardware = true,
     .has_own_roof = true,
     .is_numbered = true,
     .biases_products = true,
     .make = make_cuda},
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
