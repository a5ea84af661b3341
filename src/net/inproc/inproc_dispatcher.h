// The threads of an inproc link. They give a connection a turn when something has arrived for it.
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

  /// Owns the connection until `forget`. Returns false if the dispatcher is already stopped.
  bool add(std::shared_ptr<InprocConnection> connection);
  void forget(const InprocConnection* connection) { connections_.forget(connection); }
  /// Call it when something has arrived for a connection. Wakes a sleeping thread.
  void wake();
  /// Calls the connection's give_up at the deadline, unless the connection has ended by then.
  void give_up_at(Deadline deadline, std::weak_ptr<InprocConnection> connection);
  /// On the calling thread, gives one turn to each connection for which something has arrived.
  /// Returns false if no connection took a turn.
  bool help();
  /// Joins the threads and returns the remaining connections.
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
