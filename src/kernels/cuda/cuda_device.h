// An NVIDIA GPU, driven by calls of its driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/cuda_compiler.h"
#include "kernels/cuda/cuda_plan.h"
#include "kernels/cuda/cuda_timer.h"
#include "kernels/cuda/cudnn.h"
#include "kernels/device.h"

namespace paceline {

struct CudaOptions {
  bool waits = false;          // each kernel returns when it is done, and an error names its node
  bool tf32 = false;           // libraries may multiply float32 in TF32
  bool deterministic = false;  // libraries use only deterministic kernels
};

/// Kernels are compiled when they are made, or found in the user's cache folder: those of
/// element-wise nodes in float32 are generated, those of other nodes written (cuda_work.h).
/// cuBLASLt and cuDNN compute products and convolutions, where they are installed and have a plan.
/// A node that has no kernel is computed by `host`, with copies there and back.
///
/// The kernels ignore an index in a node's input that is out of its range. The next wait for the
/// device throws kInvalidArgument, which names the index.
///
/// Kernels and copies go to one stream, in the order in which they are called. Any thread may call;
/// one at a time runs kernels. Large memory of the host is pinned when it is first copied from or
/// to the device, which then copies at the speed of its link.
class CudaDevice : public Device, private QueueClock, private Event::Source, private PagePinner {
 public:
  /// Throws kFailedPrecondition if there is no GPU of this index. `calls` and what they reach must
  /// outlive the device.
  CudaDevice(const CudaCalls& calls, int index, std::unique_ptr<Device> host,
             const CudaOptions& options = {});
  ~CudaDevice() override;

  std::string name() const override { return name_; }
  std::string hardware() const override;
  std::unique_ptr<Kernel> make_kernel(const Node& node) override;
  /// Throws kUnavailable if the GPU has too little memory left.
  Buffer allocate(std::size_t bytes) override;
  MemorySpace space() const override { return MemorySpace(this); }
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  QueueClock* queue_clock() override { return calls_.elapsed != nullptr ? this : nullptr; }
  Event record() override;
  void wait(const Event& event) override;
  Duration copy_time() const override;
  Duration host_op_time() const override { return Duration(host_op_ns_); }
  /// Counts the call of a library as one launch.
  std::int64_t launches() const override { return launches_; }
  ThreadPool& threads() override { return host_->threads(); }
  void synchronize() override;
  std::vector<std::string> remarks() const override;

 private:
  class ElementwiseKernel;
  class WrittenKernel;
  class HostKernel;
  class CheckedKernel;

  std::int64_t mark() override;
  std::optional<TimePoint> take(std::int64_t mark) override;
  void synchronize(std::uint64_t ticket) override;
  bool pin(void* begin, std::size_t bytes) override;
  void unpin(void* begin) override;
  void ask_for_upload(void* to, const void* from, std::size_t bytes);
  void ask_for_download(void* to, const void* from, std::size_t bytes);
  void release(std::byte* memory);
  void enter() const;
  std::unique_ptr<Kernel> make_own_kernel(const Node& node);
  bool cudnn_computes();
  std::unique_ptr<CudaPlan> plan(const CudaLibraryCall& call, CudaPlanLimits limits) const;
  void check(CudaCalls::Status status, const char* what) const;
  void launch(CudaCalls::Function* function, long long blocks, unsigned threads,
              std::vector<void*>& parameters);
  void ask_for_faults();
  void check_faults();
  void forget_until(std::uint64_t ticket);
  CudaCalls::Function* compiled(const std::string& source, const char* function);
  [[noreturn]] void refuse_memory(std::size_t bytes) const;

  const CudaCalls& calls_;
  const std::string name_;
  const std::unique_ptr<Device> host_;
  const CudaOptions options_;
  int device_ = 0;
  unsigned multiprocessors_ = 1;
  std::optional<CudaCodeCache> code_;
  CudaCalls::Context* context_ = nullptr;
  CudaCalls::Stream* stream_ = nullptr;
  std::optional<Cublas> cublas_;
  std::optional<Cudnn> cudnn_;
  bool cudnn_is_wrong_ = false;

  mutable std::optional<CudaTimer> timer_;  // of copies, but not of those for ops on the host

  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t last_ticket_ = 0;
  std::map<std::uint64_t, CudaCalls::Event*> events_;  // events that may not have happened yet
  std::vector<CudaCalls::Event*> spare_events_;
  std::map<std::string, CudaCalls::Module*> modules_;  // by source
  std::set<std::string> ops_on_host_;
  std::atomic<std::int64_t> host_op_ns_ = 0, launches_ = 0;
  std::set<std::string> ops_without_library_;       // no library had a plan
  std::set<WrittenKernel*> watched_;                // may have met a wrong index
  std::map<CudaCalls::Address, std::size_t> held_;  // bytes of each allocation
};

}  // namespace paceline
