#include "kernels/host_device.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

namespace {

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

}  // namespace

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

}  // namespace paceline
