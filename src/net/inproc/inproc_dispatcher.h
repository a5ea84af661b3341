// The threads of an inproc link: they give its connections a turn when something arrived for them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "net/connection_list.h"

namespace paceline {

class InprocConnection;

/// Thread-safe.
class InprocDispatcher {
 public:
  explicit InprocDispatcher(int threads);
  ~InprocDispatcher();

  /// Owns the connection until `forget`. Returns false when the dispatcher is stopped already.
  bool add(std::shared_ptr<InprocConnection> connection);
  void forget(const InprocConnection* connection) { connections_.forget(connection); }
  /// Is called when something arrived for a connection. Wakes a thread that sleeps.
  void wake();
  /// Calls the connection's give_up at the deadline, unless it is gone by then.
  void give_up_at(Deadline deadline, std::weak_ptr<InprocConnection> connection);
  /// Gives each connection for which something arrived one turn, on the calling thread.
  bool help();
  /// Joins the threads and returns the connections that are left.
  std::vector<std::shared_ptr<InprocConnection>> stop();

 private:
  void run();
  bool give_up_one();
  void sleep();

  ConnectionList<InprocConnection> connections_;
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::atomic<bool> stopped_{false};
  std::condition_variable changed_;
  std::multimap<TimePoint, std::weak_ptr<InprocConnection>> deadlines_;
  std::vector<std::thread> threads_;
};

}  // namespace paceline
