// For tests: stands between tasks over tcp, and cuts their connections at the boundaries of frames.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/poll/event_fd.h"
#include "net/poll/file_descriptor.h"

namespace paceline {

/// Listens at a port of this host's loopback and passes everything on to `target`. One thread.
class CuttingProxy {
 public:
  explicit CuttingProxy(std::string target);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }
  /// Cuts the connection that passes on frame number `first` (from 0, both directions and all
  /// connections counted), before it does; then each connection that passes on the frame `every`
  /// frames later, and so on. 0: only once.
  void cut(std::uint64_t first, std::uint64_t every = 0);
  /// Frames that were passed on.
  std::uint64_t frames() const { return frames_; }
  std::uint64_t cuts() const { return cuts_; }
  /// While true, new connections are closed at once.
  void set_blocked(bool blocked) { blocked_ = blocked; }

 private:
  struct Flow {
    FileDescriptor from;  // the `to` of the other direction
    int to = -1;
    std::vector<std::byte> waiting;
    std::size_t preamble = 0;  // bytes of it that are still to come
    bool data = false;         // carries frames
    bool ended = false;        // nothing more comes
  };
  /// The two directions of one socket.
  struct Pair {
    Flow caller, target;
    bool ended = false;
  };

  void run();
  void accept_one();
  void pass(Pair& pair, Flow& flow);
  bool pass_frames(Flow& flow);
  bool is_cut();
  static bool write_all(int fd, const std::byte* data, std::size_t bytes);

  const std::string target_;
  FileDescriptor listening_;
  std::string address_;
  EventFd stop_;
  std::atomic<std::uint64_t> frames_{0}, cuts_{0}, next_cut_{~std::uint64_t{0}}, every_{0};
  std::atomic<bool> blocked_{false};
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::thread thread_;
};

}  // namespace paceline
