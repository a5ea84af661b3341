#include "kernels/traced_device.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "kernels/forwarding_device.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// The row of a device that works behind the host. Its spans wait here until the device has told
/// their times.
class DeviceRow {
 public:
  DeviceRow(QueueClock& clock, Timeline& timeline, const std::string& name)
      : clock_(clock), timeline_(timeline), row_(timeline.add_row(name)) {}

  /// Calls `queue`, which gives the device some work, and adds the work's span once it is done.
  template <typename F>
  void around(const TimelineLabel* label, std::size_t bytes, F&& queue) {
    if (!timeline_.recording()) {
      queue();
      if (waits_) add_done();
      return;
    }
    Span span{label, std::int64_t(bytes), timeline_.step(), clock_.mark(), {}};
    queue();
    span.end = clock_.mark();
    {
      const std::lock_guard lock(mutex_);
      spans_.push_back(span);
    }
    add_done();
  }
  void add_done() {
    const std::lock_guard lock(mutex_);
    while (!spans_.empty() && add_done(spans_.front())) spans_.pop_front();
    waits_ = !spans_.empty();
  }

 private:
  struct Span {
    const TimelineLabel* label = nullptr;
    std::int64_t bytes = 0, step = 0;
    std::int64_t begin = 0;  // a mark
    std::int64_t end = 0;    // a mark
    std::optional<TimePoint> begun = {};
  };
  bool add_done(Span& span) {
    if (!span.begun) span.begun = clock_.take(span.begin);
    const std::optional<TimePoint> ended = span.begun ? clock_.take(span.end) : std::nullopt;
    if (!ended) return false;
    if (*span.begun == QueueClock::kNever || *ended == QueueClock::kNever) return true;
    timeline_.add({.label = span.label,
                   .begin = *span.begun,
                   .end = *ended,
                   .step = span.step,
                   .bytes = span.bytes,
                   .thread = row_});
    return true;
  }

  QueueClock& clock_;
  Timeline& timeline_;
  const pid_t row_;
  std::mutex mutex_;
  std::deque<Span> spans_;
  std::atomic<bool> waits_{false};  // there are spans
};

TimelineLabel label_of(const Node& node, const char* category) {
  std::string inputs, outputs;
  for (const Value& input : node.inputs()) {
    inputs += (inputs.empty() ? "" : ", ") + input.type().str();
  }
  for (const ValueType& output : node.outputs()) {
    outputs += (outputs.empty() ? "" : ", ") + output.str();
  }
  return {
      node.op().name, category, {{"node", node.name()}, {"inputs", inputs}, {"outputs", outputs}}};
}

constexpr char kOnDevice[] = "on device";

class TracedKernel : public ForwardingKernel {
 public:
  /// `row` is null for a device without one.
  TracedKernel(std::unique_ptr<Kernel> kernel, Timeline& timeline, const Node& node, DeviceRow* row)
      : ForwardingKernel(std::move(kernel)),
        timeline_(timeline),
        label_(timeline.label(label_of(node, "kernel"))),
        row_(row),
        on_device_(row != nullptr ? timeline.label(label_of(node, kOnDevice)) : nullptr) {}

  void run(const KernelCall& call) override {
    const std::size_t bytes = bytes_of(call);
    const auto queue = [&] {
      const TimelineScope scope(&timeline_, label_, std::int64_t(bytes));
      ForwardingKernel::run(call);
    };
    if (row_ == nullptr) return queue();
    row_->around(on_device_, bytes, queue);
  }

 private:
  static std::size_t bytes_of(const KernelCall& call) {
    std::size_t bytes = 0;
    for (const TensorView& input : call.inputs) bytes += input.bytes();
    for (const TensorView& output : call.outputs) bytes += output.bytes();
    return bytes;
  }

  Timeline& timeline_;
  const TimelineLabel* const label_;
  DeviceRow* const row_;
  const TimelineLabel* const on_device_;
};

class TracedDevice : public ForwardingDevice {
 public:
  TracedDevice(std::unique_ptr<Device> device, Timeline& timeline)
      : ForwardingDevice(std::move(device)), timeline_(timeline) {
    QueueClock* const clock = queue_clock();
    if (clock == nullptr) return;
    row_ = std::make_unique<DeviceRow>(*clock, timeline, name());
    upload_ = timeline.label({"copy to the device", kOnDevice, {}});
    download_ = timeline.label({"copy from the device", kOnDevice, {}});
    copy_ = timeline.label({"copy", kOnDevice, {}});
  }

  std::unique_ptr<Kernel> make_kernel(const Node& node) override {
    return std::make_unique<TracedKernel>(ForwardingDevice::make_kernel(node), timeline_, node,
                                          row_.get());
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    around(upload_, bytes, [&] { ForwardingDevice::upload(to, from, bytes); });
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    around(download_, bytes, [&] { ForwardingDevice::download(to, from, bytes); });
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    around(copy_, bytes, [&] { ForwardingDevice::copy(to, from, bytes); });
  }
  void synchronize() override {
    ForwardingDevice::synchronize();
    if (row_ != nullptr) row_->add_done();
  }

 private:
  template <typename F>
  void around(const TimelineLabel* label, std::size_t bytes, F&& queue) {
    if (row_ == nullptr) return queue();
    row_->around(label, bytes, queue);
  }

  Timeline& timeline_;
  std::unique_ptr<DeviceRow> row_;  // null: the device has none
  const TimelineLabel *upload_ = nullptr, *download_ = nullptr, *copy_ = nullptr;
};

}  // namespace

std::unique_ptr<Device> make_traced_device(std::unique_ptr<Device> device, Timeline& timeline) {
  return std::make_unique<TracedDevice>(std::move(device), timeline);
}

}  // namespace paceline
