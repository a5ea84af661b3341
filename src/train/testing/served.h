// For tests: a parameter server, and the clusters of its workers.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "paceline/cluster.h"
#include "params/ps/serve.h"

namespace paceline {

/// A ps in a thread, which ends when this object is destroyed.
class Served {
 public:
  explicit Served(int workers = 1) : Served(addresses(workers)) {}
  /// Serves workers with these addresses, where the workers may also connect to each other.
  explicit Served(std::vector<std::string> workers) : stop_(eventfd(0, EFD_CLOEXEC)) {
    spec_.workers = std::move(workers);
    std::promise<std::string> address;
    PsOptions options;
    options.spec = spec_;
    options.spec.ps = {"127.0.0.1:0"};
    options.cluster_id = "served";
    options.task = {TaskId::Role::kPs, 0};
    options.stop_fd = stop_;
    options.listening = [&](const std::string& at) { address.set_value(at); };
    serving_ = std::async(std::launch::async, [options] { return serve(options); });
    spec_.ps = {address.get_future().get()};
  }
  ~Served() {
    eventfd_write(stop_, 1);
    serving_.wait();
    close(stop_);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  Cluster cluster(int worker = 0) const {
    Cluster cluster;
    cluster.process = Cluster::Process::kTask;
    cluster.spec = spec_;
    cluster.cluster_id = "served";
    cluster.task = {TaskId::Role::kWorker, worker};
    cluster.threads = 1;
    return cluster;
  }

 private:
  static std::vector<std::string> addresses(int workers) {
    std::vector<std::string> made;
    for (int i = 1; i <= workers; ++i) made.push_back("127.0.0.1:" + std::to_string(i));
    return made;
  }

  int stop_;
  ClusterSpec spec_;
  std::future<PsSummary> serving_;
};

}  // namespace paceline
