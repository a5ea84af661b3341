#include "predict/device_roof.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "paceline/error.h"
#include "paceline/graph.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

constexpr int kTries = 3;  // of each size; the fastest counts

/// A node with its kernel, and its inputs and output in the device's memory.
class NodeOnDevice {
 public:
  NodeOnDevice(const Node& node, Device& device)
      : cost_(node.op().cost(node)),
        kernel_(device.make_kernel(node)),
        scratch_(device.allocate(kernel_->scratch_bytes())) {
    for (const Value& input : node.inputs()) {
      inputs_.push_back(view_of(input.type(), device));
      fill(memories_.back(), device);
    }
    for (const ValueType& output : node.outputs()) outputs_.push_back(view_of(output, device));
  }
  void run() { kernel_->run({inputs_, outputs_, scratch_.span(), {}}); }
  const Cost& cost() const { return cost_; }

 private:
  TensorView view_of(const ValueType& type, Device& device) {
    Buffer& memory = memories_.emplace_back(device.allocate(type.bytes()));
    return {.data = memory.data(), .dtype = type.dtype, .shape = type.shape};
  }

  // Zeros would not do: multiplying them takes less power, so that a device may run faster.
  static void fill(const Buffer& memory, Device& device) {
    std::array<float, 4096> numbers;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = float(i * 7919 % numbers.size()) / float(numbers.size()) - 0.5f;
    }
    std::size_t filled = std::min(sizeof numbers, memory.size());
    device.upload(memory.data(), numbers.data(), filled);
    while (filled < memory.size()) {
      const std::size_t part = std::min(filled, memory.size() - filled);
      device.copy(memory.data() + filled, memory.data(), part);
      filled += part;
    }
    device.synchronize();
  }

  const Cost cost_;
  const std::unique_ptr<Kernel> kernel_;
  const Buffer scratch_;
  std::vector<Buffer> memories_;
  std::vector<TensorView> inputs_, outputs_;
};

/// The work of a try, and the time that it took in the fastest of some tries.
struct Measured {
  double amount = 0;  // FLOPs, bytes or launches
  Duration time{0};
  double per_second() const {
    return amount / std::chrono::duration<double>(std::max(time, Duration(1))).count();
  }
};

class DeviceRoofMeter {
 public:
  DeviceRoofMeter(Device& device, const Clock& clock, const DeviceRoofSizes& sizes)
      : device_(device), clock_(clock), sizes_(sizes) {}

  double product_rate() const {
    return rate(sizes_.least_side, sizes_.most_side, [&](std::int64_t side) {
      Graph graph;
      const Value product = matmul(graph.input("a", {side, side}), graph.input("b", {side, side}));
      NodeOnDevice node(product.node(), device_);
      return Measured{node.cost().flops, fastest([&] { node.run(); })};
    });
  }
  double memory_rate() const {
    return rate(sizes_.least_elements, sizes_.most_elements, [&](std::int64_t elements) {
      Graph graph;
      NodeOnDevice node(relu(graph.input("x", {elements})).node(), device_);
      return Measured{node.cost().bytes, fastest([&] { node.run(); })};
    });
  }
  double launch_rate() const {
    Graph graph;
    NodeOnDevice node(relu(graph.input("x", {1})).node(), device_);
    return rate(sizes_.least_launches, sizes_.most_launches, [&](std::int64_t launches) {
      return Measured{double(launches), fastest([&] {
                        for (std::int64_t i = 0; i < launches; ++i) node.run();
                      })};
    });
  }
  double upload_rate() const {
    return copy_rate([&](const Buffer& there, const Buffer& here) {
      device_.upload(there.data(), here.data(), here.size());
    });
  }
  double download_rate() const {
    return copy_rate([&](const Buffer& there, Buffer& here) {
      device_.download(here.data(), there.data(), here.size());
    });
  }

 private:
  // Returns the rate of the last size.
  template <typename Size, typename Measure>
  double rate(Size least, Size most, const Measure& measure) const {
    Measured last;
    for (Size size = least; size <= most; size *= 2) {
      try {
        last = measure(size);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kUnavailable || last.amount == 0) throw;
        break;  // the device's memory is too small for this size
      }
      if (last.time >= sizes_.patience) break;
    }
    return last.per_second();
  }

  template <typename Copy>
  double copy_rate(const Copy& copy) const {
    return rate(sizes_.least_bytes, sizes_.most_bytes, [&](std::size_t bytes) {
      const Buffer there = device_.allocate(bytes);
      Buffer here(bytes);
      return Measured{double(bytes), fastest([&] { copy(there, here); })};
    });
  }

  // The first call, which does not count, may pin memory or choose an algorithm.
  template <typename Call>
  Duration fastest(const Call& call) const {
    call();
    device_.synchronize();
    Duration best = Duration::max();
    for (int i = 0; i < kTries; ++i) {
      const TimePoint begun = clock_.now();
      call();
      device_.synchronize();
      best = std::min<Duration>(best, clock_.now() - begun);
    }
    return best;
  }

  Device& device_;
  const Clock& clock_;
  const DeviceRoofSizes& sizes_;
};

}  // namespace

DeviceRoof measure_device_roof(Device& device, const Clock& clock, const DeviceRoofSizes& sizes) {
  const DeviceRoofMeter meter(device, clock, sizes);
  const std::string hardware = device.hardware();
  return {.name = hardware.empty() ? device.name() : hardware,
          .flops_per_s = meter.product_rate(),
          .bytes_per_s = meter.memory_rate(),
          .launch_s = 1 / meter.launch_rate(),
          .upload_bytes_per_s = meter.upload_rate(),
          .download_bytes_per_s = meter.download_rate()};
}

}  // namespace paceline
