#include "kernels/host_device.h"

#include <fmt/format.h>

#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {

namespace {

class UserKernel : public Kernel {
 public:
  explicit UserKernel(const Node& node) : node_(node) {}
  void run(const KernelCall& call) override { node_.op().kernel(node_, call); }

 private:
  const Node& node_;
};

}  // namespace

HostDevice::HostDevice(const DeviceOptions& options, std::vector<KernelTable> tables)
    : kind_(options.kind),
      index_(options.index),
      tables_(std::move(tables)),
      pool_(options.threads) {}

std::string HostDevice::name() const { return fmt::format("{}:{}", kind_, index_); }

std::unique_ptr<Kernel> HostDevice::make_kernel(const Node& node) {
  if (node.op().kernel) return std::make_unique<UserKernel>(node);
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
