// Accepts sockets, and reads what each one is for. If the process has no descriptor left, the
// acceptor tries again after a pause.
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

/// Tells the user of a link which callers it has refused: the first few at once, and then at most
/// one message a second, because thousands may call. Thread-safe.
class Refusals {
 public:
  /// `tell` may be empty.
  explicit Refusals(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}
  void add(const std::string& caller, const std::string& why);

 private:
  const std::function<void(const std::string&)> tell_;
  std::mutex mutex_;
  TimePoint full_;  // when the full number of messages is allowed again
  std::int64_t untold_ = 0;
};

class Greeting;

class SocketAcceptor : public Watcher, public std::enable_shared_from_this<SocketAcceptor> {
 public:
  struct Patience {
    Duration with_one;         // how long a socket may take to say what it is for
    std::size_t most_at_once;  // sockets that are not yet a connection; any more are dropped
    std::size_t most_of_one;   // such sockets from one host
  };
  /// `refused` is called with a message for each caller that is dropped because of what it has
  /// said.
  SocketAcceptor(std::shared_ptr<Poller> poller, FileDescriptor listening, Patience patience,
                 std::function<void(const std::string&)> refused);

  void start();
  /// Stops accepting, and drops every socket that is not yet a connection.
  void stop();

  // A greeting calls the three functions below.
  /// Called when the greeting has read everything. Returns false if the acceptor accepts no callers
  /// any more.
  bool leaves(const std::shared_ptr<Greeting>& greeting);
  /// Reports the refusal of the greeting's caller. The socket stays open until the caller closes
  /// it.
  void tell_refused(const Greeting& greeting, const Error& why);
  /// Drops a greeting whose socket has closed, sent garbage, or stayed silent too long.
  void drop(const std::shared_ptr<Greeting>& greeting, const Error& why);

 protected:
  /// Makes the object that reads what a new socket is for. Throws Error if the socket must be
  /// dropped. The caller holds the mutex.
  virtual std::shared_ptr<Greeting> greeting_of(FileDescriptor socket) = 0;
  /// Returns the number of sockets that were read and are not yet a connection. The caller holds
  /// the mutex.
  virtual std::size_t waiting() const { return 0; }
  virtual void drop_waiting() {}
  Refusals& refusals() { return refusals_; }

  bool stopped() const { return !listening_; }
  const std::shared_ptr<Poller>& poller() const { return poller_; }
  /// Makes the call after Patience::with_one: a socket that is accepted now has then had enough
  /// time.
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
  std::map<std::string, std::size_t> of_host_;  // the number of greetings, by the caller's host
};

}  // namespace paceline
