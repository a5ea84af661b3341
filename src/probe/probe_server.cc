#include "probe/probe_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/cores.h"
#include "base/failure_text.h"
#include "base/plain_text.h"
#include "base/this_process.h"
#include "paceline/error.h"
#include "predict/hosts_file.h"
#include "probe/pair_meter.h"
#include "probe/stream_pump.h"

namespace paceline {
namespace {

constexpr Duration kFarewell = std::chrono::seconds(1);

TimePoint time_of_now() { return std::chrono::steady_clock::now(); }

std::uint64_t shown_nanoseconds() {
  return std::uint64_t(
      std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

void send_frame(Connection& to, ProbeType type, const std::vector<std::byte>& payload = {}) {
  to.send_copy({.payload_bytes = std::uint32_t(payload.size()), .type = std::uint16_t(type)},
               payload);
}

}  // namespace

std::unique_ptr<Link> probe_link(const std::shared_ptr<const LinkSecurity>& security,
                                 const std::function<void(const std::string&)>& say) {
  LinkOptions options;
  options.security = security;
  options.threads = std::clamp(usable_cores(), 2, kProbeStreams);
  options.refused = [say](const std::string& line) { say("warning: " + plain_text(line)); };
  return make_link("tcp", options);
}

class ProbeServer::Caller : public Receiver {
 public:
  Caller(ProbeServer& server, ProbeDesk::Caller id, std::shared_ptr<Connection> connection)
      : id(id), connection(std::move(connection)), server_(server) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    check_probe_length(header);
    bytes_.resize(std::max<std::size_t>(bytes_.size(), header.payload_bytes));
    return std::span(bytes_).first(header.payload_bytes);
  }

  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    const ProbeType type{header.type};
    if (type == ProbeType::kHello) return server_.said_hello(*this, decode_probe_hello(payload));
    server_.sent(*this, type);
    switch (type) {
      case ProbeType::kPing:
        return connection->send({.type = std::uint16_t(ProbeType::kPong),
                                 .offset = shown_nanoseconds(),
                                 .step = header.step},
                                {});
      case ProbeType::kBytes:
        return server_.tally_.add(payload.size());
      case ProbeType::kFilled:
        return send_frame(*connection, ProbeType::kAllHere);
      case ProbeType::kFill:
        pump_ = std::make_unique<StreamPump>(
            connection, std::chrono::milliseconds(decode_milliseconds(payload)));
        return;
      case ProbeType::kAskCount:
        return send_frame(*connection, ProbeType::kCount, encode(server_.tally_.count()));
      case ProbeType::kAskRoof:
        return server_.begin(*this, type, {});
      case ProbeType::kMeasure:
        return server_.begin(*this, type, decode_probe_measure(payload));
      default:
        return;
    }
  }

  void on_closed(const Error&) override {
    if (pump_ != nullptr) pump_->stop();
    server_.left(*this);
  }

  const ProbeDesk::Caller id;
  const std::shared_ptr<Connection> connection;

 private:
  ProbeServer& server_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<StreamPump> pump_;
};

ProbeServer::ProbeServer(ProbeServing serving)
    : serving_(std::move(serving)), link_(probe_link(serving_.security, serving_.say)) {
  address_ = link_->listen(serving_.address, [this](std::shared_ptr<Connection> connection) {
    return accept(std::move(connection));
  });
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
  housekeeper_ = std::jthread([this](const std::stop_token& stop) { keep_house(stop); });
}

ProbeServer::~ProbeServer() {
  {
    const std::lock_guard lock(mutex_);
    session_stop_.request_stop();
  }
  worker_ = {};
  housekeeper_ = {};
  link_.reset();
}

Receiver* ProbeServer::accept(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  const ProbeDesk::Caller id = next_++;
  if (const std::string why = desk_.called(id, time_of_now()); !why.empty())
    throw Error(ErrorCode::kUnavailable, why);
  changed_.notify_all();
  return callers_.emplace(id, std::make_unique<Caller>(*this, id, std::move(connection)))
      .first->second.get();
}

void ProbeServer::said_hello(Caller& caller, const ProbeHello& hello) {
  const std::lock_guard lock(mutex_);
  const std::string why = desk_.hello(caller.id, hello, time_of_now());
  if (!why.empty())
    return send_frame(*caller.connection, ProbeType::kRefuse, encode_probe_text(why));
  if (hello.role == ProbeRole::kAsks) {
    session_ = hello.session;
    session_stop_ = {};
    serving_.say(fmt::format("{} measures this host, for {} s at most", hello.process,
                             std::min<std::int64_t>(hello.seconds, 86'400)));
  }
  changed_.notify_all();
  send_frame(*caller.connection, ProbeType::kWelcome);
}

void ProbeServer::sent(Caller& caller, ProbeType type) {
  const std::lock_guard lock(mutex_);
  desk_.sent(caller.id, type);
}

void ProbeServer::begin(Caller& caller, ProbeType type, const ProbeMeasure& measure) {
  const std::lock_guard lock(mutex_);
  desk_.begin_work(caller.id);
  work_ = {caller.id, type, measure, session_, session_stop_.get_token()};
  changed_.notify_all();
}

void ProbeServer::left(Caller& caller) {
  const std::lock_guard lock(mutex_);
  const std::string served = desk_.served();
  for (const ProbeDesk::Caller other : desk_.left(caller.id)) {
    to_close_.push_back(callers_.at(other)->connection);
  }
  if (!served.empty() && desk_.served().empty()) {
    session_stop_.request_stop();
    serving_.say(served + " has left");
  }
  gone_.push_back(std::move(callers_.extract(caller.id).mapped()));
  changed_.notify_all();
}

void ProbeServer::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return work_.has_value(); })) {
    const Work next = *std::exchange(work_, {});
    lock.unlock();
    carry_out(next);
    lock.lock();
  }
}

void ProbeServer::carry_out(const Work& work) {
  std::vector<std::byte> payload;
  ProbeType type = ProbeType::kMeasured;
  try {
    if (work.type == ProbeType::kAskRoof) {
      const HostNumbers numbers = numbers_of(serving_.roof());
      type = ProbeType::kRoof;
      payload = encode(ProbeRoof{{numbers.begin(), numbers.end()}});
    } else {
      const Duration each = std::chrono::milliseconds(
          std::min<std::uint32_t>(work.measure.milliseconds, kMostFillMilliseconds / 2));
      PairMeter meter(*link_, work.measure.address, work.session, this_process(), work.stop);
      payload = encode(ProbeMeasured{.failure = {}, .figures = meter.measure(each)});
    }
  } catch (const std::exception& error) {
    const std::string why = failure_text(error);
    payload = type == ProbeType::kMeasured && work.type == ProbeType::kMeasure
                  ? encode(ProbeMeasured{.failure = why, .figures = {}})
                  : encode_probe_text("its roof cannot be measured: " + why);
    type = work.type == ProbeType::kMeasure ? ProbeType::kMeasured : ProbeType::kRefuse;
  }
  answer(work, type, payload);
}

void ProbeServer::answer(const Work& work, ProbeType type, const std::vector<std::byte>& payload) {
  const std::lock_guard lock(mutex_);
  desk_.end_work();
  const auto caller = callers_.find(work.caller);
  if (caller != callers_.end()) send_frame(*caller->second->connection, type, payload);
}

// Closes the connections of callers whose time is over, and deletes callers that have gone.
void ProbeServer::keep_house(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    for (const ProbeDesk::Caller late : desk_.late(time_of_now())) {
      to_close_.push_back(callers_.at(late)->connection);
    }
    const auto closing = std::exchange(to_close_, {});
    auto gone = std::exchange(gone_, {});
    lock.unlock();
    for (const auto& connection : closing) connection->close(Deadline::after(kFarewell));
    gone.clear();
    lock.lock();
    // A late caller's connection is first closed in an orderly way, which may take kFarewell. So
    // late callers are looked for again only after that time.
    const TimePoint due = std::max<TimePoint>(desk_.due(), time_of_now() + kFarewell);
    changed_.wait_until(lock, stop, due,
                        [&] { return !to_close_.empty() || !gone_.empty() || desk_.due() < due; });
  }
}

}  // namespace paceline
