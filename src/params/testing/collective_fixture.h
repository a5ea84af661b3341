// For tests: the workers of an all-reduce as threads of this process.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/inproc/inproc_hub.h"
#include "params/collective/collective_store.h"

namespace paceline {

/// How the workers reach each other.
struct CollectiveWay {
  const char* name = "";
  const char* link = "inproc";  // or tcp, shm
  bool share_memory = true;
};
inline std::ostream& operator<<(std::ostream& out, const CollectiveWay& way) {
  return out << way.name;
}

class CollectiveFixture : public ::testing::TestWithParam<CollectiveWay> {
 protected:
  CollectiveFixture() : hub_(std::make_shared<InprocHub>()) {}
  void make_spec(int workers);
  CollectiveOptions options(int worker);
  using Stores = std::vector<std::unique_ptr<CollectiveStore>>;
  /// Joins all workers, each in a thread of its own. The chief writes initial_states(variables).
  Stores join_all(const std::vector<VariableSpec>& variables);
  std::future<std::unique_ptr<CollectiveStore>> join_later(
      int worker, const std::vector<VariableSpec>& variables);
  /// Calls work(worker) for each worker at once, and returns when all calls have returned.
  static void each(const std::vector<int>& workers, const std::function<void(int)>& work);
  static void each(const Stores& stores, const std::function<void(CollectiveStore&)>& work);
  std::string said();
  bool wait_said(const std::string& text);

  ClusterSpec spec_;
  Duration join_timeout_ = std::chrono::seconds(60);

 private:
  const std::shared_ptr<InprocHub> hub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string said_;
};

}  // namespace paceline
