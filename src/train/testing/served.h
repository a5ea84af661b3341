// For tests: a parameter server, and the cluster of its only worker.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <future>
#include <string>

#include "paceline/cluster.h"
#include "params/server/server.h"

namespace paceline {

/// A ps in a thread, which ends with the object.
class Served {
 public:
  Served() : stop_(eventfd(0, EFD_CLOEXEC)) {
    std::promise<std::string> address;
    ServerOptions options;
    options.spec = {.ps = {"127.0.0.1:0"}, .workers = {"127.0.0.1:1"}};
    options.cluster_id = "served";
    options.task = {TaskId::Job::kPs, 0};
    options.stop_fd = stop_;
    options.listening = [&](const std::string& at) { address.set_value(at); };
    serving_ = std::async(std::launch::async, [options] { return serve(options); });
    cluster_.role = Cluster::Role::kTask;
    cluster_.spec = {.ps = {address.get_future().get()}, .workers = {"127.0.0.1:1"}};
    cluster_.cluster_id = "served";
    cluster_.threads = 1;
  }
  ~Served() {
    eventfd_write(stop_, 1);
    serving_.wait();
    close(stop_);
  }
  const Cluster& cluster() const { return cluster_; }

 private:
  int stop_;
  Cluster cluster_;
  std::future<ServerSummary> serving_;
};

}  // namespace paceline
