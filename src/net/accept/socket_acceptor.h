// Accepts sockets, and reads what they are for. While the process has no descriptor left, it waits.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/deadline.h"
#include "net/poll/poller.h"
#include "paceline/error.h"

namespace paceline {

/// Tells the user of a link which callers it has refused: the first few, and then at most one a
/// second, since they may come by thousands. Thread-safe.
class Refusals {
 public:
  /// `tell` may be empty.
  explicit Refusals(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  void add(const std::string& caller, const std::string& why);

 private:
  const std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  TimePoint full_;  // when as many may be told at once as at the beginning
  std::int64_t untold_ = 0;
};

class Greeting;

class SocketAcceptor : public Watcher, public std::enable_shared_from_this<SocketAcceptor> {
 public:
  struct Patience {
    Duration with_one;         // a socket that has not said by then what it is for is dropped
    std::size_t most_at_once;  // so many sockets may be no connection yet; others are dropped
    std::size_t most_of_one;   // so many of one host
  };
  /// `refused` is told of callers that are dropped for what they have said.
  SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening, Patience patience,
                 std::function<void(const std::string&)> refused);

  void start();
  /// Accepts no more, and drops every socket that is no connection yet.
  void stop();

  // A greeting calls these.
  /// The greeting has heard all. Returns false when nothing is accepted any more.
  bool leaves(const std::shared_ptr<Greeting>& greeting);
  /// The greeting's caller was refused, and its socket goes on until it closes.
  void tell_refused(const Greeting& greeting, const Error& why);
  /// The greeting's socket has closed, talked nonsense, or stayed silent too long.
  void drop(const std::shared_ptr<Greeting>& greeting, const Error& why);

 protected:
  /// Reads what a new socket is for, without blocking. Called with the mutex.
  virtual std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) = 0;
  /// Returns how many sockets were heard and are no connection yet. Called with the mutex.
  virtual std::size_t waiting() const { return 0; }
  virtual void drop_waiting() {}
  Refusals& refusals() { return refusals_; }

  bool stopped() const { return !listening_; }
  const std::shared_ptr<Poller>& poller() const { return poller_; }
  /// Makes the call when a socket has had time enough.
  void call_late(std::function<void()> call);

  std::mutex mutex_;

 private:
  void on_readable() override;
  void on_writable() override {}
  void accept_all();
  void welcome(FileDescriptor socket);
  void forget(const std::shared_ptr<Greeting>& greeting);
  void start_after_pause();

  const std::shared_ptr<Poller> poller_;
  const Patience patience_;
  std::optional<Watch> listening_;
  Refusals refusals_;
  std::set<std::shared_ptr<Greeting>> greetings_;
  std::map<std::string, std::size_t> of_host_;  // greetings by the caller's host
};

}  // namespace paceline
