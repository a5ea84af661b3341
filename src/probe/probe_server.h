// A server through which processes with the job's key measure this host.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "net/link.h"
#include "predict/prediction.h"
#include "probe/probe_call.h"
#include "probe/probe_desk.h"

namespace paceline {

struct ProbeServing {
  std::string address;  // "host:port" to listen at
  std::shared_ptr<const LinkSecurity> security;
  /// Measures what this host can do.
  std::function<PredictedHost()> roof;
  /// Gets lines for the user, on any thread.
  std::function<void(const std::string&)> say;
};

/// Makes the link through which hosts are measured. `say` gets a line for each caller that is
/// refused.
std::unique_ptr<Link> probe_link(const std::shared_ptr<const LinkSecurity>& security,
                                 const std::function<void(const std::string&)>& say);

/// Serves from its constructor to its destructor, by driving the state machine `ProbeDesk` with the
/// frames of a link.
class ProbeServer {
 public:
  /// Throws what Link::listen throws.
  explicit ProbeServer(ProbeServing serving);
  ~ProbeServer();
  ProbeServer(const ProbeServer&) = delete;
  ProbeServer& operator=(const ProbeServer&) = delete;

  const std::string& address() const { return address_; }

 private:
  class Caller;
  struct Work {
    ProbeDesk::Caller caller = 0;
    ProbeType type = ProbeType::kAskRoof;
    ProbeMeasure measure;
    std::uint64_t session = 0;
    std::stop_token stop;
  };

  Receiver* accept(std::shared_ptr<Connection> connection);
  void said_hello(Caller& caller, const ProbeHello& hello);
  void sent(Caller& caller, ProbeType type);
  void begin(Caller& caller, ProbeType type, const ProbeMeasure& measure);
  void left(Caller& caller);
  void work(const std::stop_token& stop);
  void carry_out(const Work& work);
  void answer(const Work& work, ProbeType type, const std::vector<std::byte>& payload);
  void keep_house(const std::stop_token& stop);

  const ProbeServing serving_;
  std::string address_;
  ProbeTally tally_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  ProbeDesk desk_;
  std::map<ProbeDesk::Caller, std::unique_ptr<Caller>> callers_;
  std::vector<std::unique_ptr<Caller>> gone_;
  std::vector<std::shared_ptr<Connection>> to_close_;
  ProbeDesk::Caller next_ = 1;
  std::uint64_t session_ = 0;
  std::stop_source session_stop_;
  std::optional<Work> work_;
  std::unique_ptr<Link> link_;
  std::jthread worker_, housekeeper_;
};

}  // namespace paceline
