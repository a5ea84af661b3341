// A device that computes on this machine's cores, with the first of its tables that has a kernel.
#pragma once

#include <vector>

#include "kernels/device.h"
#include "kernels/kernel_table.h"

namespace paceline {

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

}  // namespace paceline
