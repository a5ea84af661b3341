#include "params/ps/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/failure_text.h"
#include "net/link_kind.h"
#include "net/poll/event_fd.h"
#include "net/poll/poll_until.h"
#include "net/tls/link_security.h"
#include "params/interval_timer.h"
#include "params/ps/ps_driver.h"
#include "params/wire/traced_messages.h"

namespace paceline {
namespace {

std::string address_of(const PsOptions& options) {
  if (!options.bind.empty()) return options.bind;
  if (std::size_t(options.task.index) >= options.spec.ps.size()) {
    throw Error(ErrorCode::kInvalidArgument,
                options.task.str() + " is not in the cluster spec " + options.spec.str());
  }
  return options.spec.ps[std::size_t(options.task.index)];
}

class ServingPs {
 public:
  explicit ServingPs(const PsOptions& options)
      : options_(options),
        driver_(options, [this] { wake(); }),
        progress_due_(options.progress_every, now()),
        link_(make()) {}

  enum class End : std::uint8_t { kFinished, kBeginsAgain };
  End run() {
    listen();
    while (true) {
      driver_.connect_coordinator(*link_);
      const TimePoint next = std::min(driver_.turn(now()), tell_progress());
      if (driver_.begins_again()) return End::kBeginsAgain;
      switch (driver_.end(now())) {
        case Membership::End::kFinished:
          if (stops_) was_told_to_stop();
          return End::kFinished;
        case Membership::End::kAbandoned:
          abandoned();
        case Membership::End::kNotYet:
          break;
      }
      wait(stops_ ? std::min(next, *stops_) : next);
      if (told_to_stop() && !take_time()) was_told_to_stop();
      if (stops_ && (driver_.all_gone() || now() >= *stops_)) was_told_to_stop();
    }
  }

  std::uint64_t epoch() const { return driver_.epoch(); }

  PsSummary summary() const { return driver_.summary(); }

 private:
  std::unique_ptr<Link> make() {
    LinkOptions link;
    link.threads = driver_.threads();
    link.security = load_security(options_.security);
    link.refused = options_.warn;
    if (options_.link_factory) return options_.link_factory(link);
    return traced(make_link(options_.link, link), options_.timeline);
  }

  /// Calls options_.progress if that is due. Returns the latest time for the next call.
  TimePoint tell_progress() {
    if (!options_.progress) return TimePoint::max();
    const std::int64_t step = driver_.global_step();
    const TimePoint time = now();
    if (driver_.applied() > 0 && progress_due_.at(step, time)) {
      progress_due_.begin(step, time);
      options_.progress(summary());
    }
    if (options_.progress_every.seconds <= 0) return TimePoint::max();
    return time + std::chrono::duration_cast<Duration>(
                      std::chrono::duration<double>(options_.progress_every.seconds));
  }

  /// Call it when this ps was told to stop. Gives the workers time to leave; returns false when the
  /// ps has no workers or no time to give.
  bool take_time() {
    if (options_.stop_within <= Duration(0) || !driver_.ask_to_leave()) return false;
    stops_ = now() + options_.stop_within;
    if (options_.stopping) options_.stopping();
    return true;
  }

  // A server without a job (any_job) listens at --bind, so the error is about that flag and needs
  // no hint.
  std::string start_to_listen() {
    try {
      return link_->listen(address_of(options_), [this](std::shared_ptr<Connection> peer) {
        return driver_.accept(std::move(peer));
      });
    } catch (const Error& error) {
      if (options_.any_job) throw;
      const bool not_here = error.code() == ErrorCode::kNotFound && options_.bind.empty();
      throw Error(error.code(),
                  fmt::format("{}: {}{}", options_.task.str(), error.what(),
                              not_here ? "; --bind 0.0.0.0 listens at every address of this host, "
                                         "at the port that the cluster says"
                                       : ""));
    }
  }

  void listen() {
    const std::string address = start_to_listen();
    const bool is_open = options_.security.tls == Tls::kNever && !options_.this_machine;
    if (!link_traits(link_->kind()).within_a_process && is_open && !is_loopback(address)) {
      driver_.warn(
          fmt::format("{} listens on {}: not encrypted, not authenticated; use it "
                      "only in a network that you trust",
                      options_.task.str(), address));
    }
    if (options_.listening) options_.listening(address);
  }

  [[noreturn]] void was_told_to_stop() {
    throw Error(ErrorCode::kCancelled, options_.task.str() + " was told to stop");
  }

  [[noreturn]] void abandoned() {
    if (driver_.given_up()) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("none of its workers was connected when another job came: {}",
                              driver_.members()));
    }
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{} had no worker for {:.0f} s (--join-timeout): {}", options_.task.str(),
                    std::chrono::duration<double>(options_.join_timeout).count(),
                    driver_.members()));
  }

  void wake() {
    woken_ = true;
    wake_.raise();
  }

  /// Returns when the driver has something to do or this ps is told to stop, and at `next` at the
  /// latest.
  void wait(TimePoint next) {
    const Deadline deadline = Deadline::at(next, *options_.clock);
    link_->wait(wake_, deadline.or_when_readable(stops_ ? -1 : options_.stop_fd),
                [this] { return woken_.exchange(false); });
  }

  /// True once the user has asked for a stop, until this ps begins to stop.
  bool told_to_stop() const {
    return !stops_ && wait_to_read(options_.stop_fd, Deadline::after(Duration(0)));
  }

  TimePoint now() const { return options_.clock->now(); }

  const PsOptions& options_;
  EventFd wake_;
  std::atomic<bool> woken_{false};
  PsDriver driver_;
  IntervalTimer progress_due_;
  // The latest time at which this ps ends; empty: it was not told to stop.
  std::optional<TimePoint> stops_;
  // Last, so that it is destroyed first: its threads call the driver.
  std::unique_ptr<Link> link_;
};

}  // namespace

// If a ps has begun again, the summary includes its contributions and bytes from before that.
PsSummary serve(const PsOptions& asked, PsSummary* summary) {
  PsOptions options = asked;
  std::unique_ptr<ServingPs> ps;
  PsSummary before;
  const auto done = [&] {
    PsSummary all = ps->summary();
    all.applied += before.applied;
    all.late += before.late;
    all.bytes_sent += before.bytes_sent;
    all.bytes_received += before.bytes_received;
    return all;
  };
  try {
    ps = std::make_unique<ServingPs>(options);
    while (ps->run() == ServingPs::End::kBeginsAgain) {
      before = done();
      options.first_epoch = ps->epoch() + 1;
      ps.reset();  // frees the address
      ps = std::make_unique<ServingPs>(options);
    }
  } catch (const std::exception& error) {
    if (summary != nullptr) {
      if (ps != nullptr) *summary = done();
      summary->error = failure_text(error);
    }
    throw;
  }
  PsSummary all = done();
  if (summary != nullptr) *summary = all;
  return all;
}

}  // namespace paceline
