#include "probe/probe_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace paceline {
namespace {

constexpr Duration kClosingPatience = std::chrono::milliseconds(200);

TimePoint arrival_time() { return std::chrono::steady_clock::now(); }

}  // namespace

void ProbeTally::add(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  count_.bytes += std::int64_t(bytes);
  count_.nanoseconds = arrival_time().time_since_epoch().count();
}

ProbeCount ProbeTally::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

ProbeCall::ProbeCall(Link& link, const std::string& address, const ProbeHello& hello,
                     ProbeCalling calling)
    : address_(address),
      calling_(std::move(calling)),
      connection_(link.connect(address, *this, calling_.deadline)) {
  try {
    send(ProbeType::kHello, encode(hello));
    wait(ProbeType::kWelcome, calling_.deadline);
  } catch (...) {
    close();
    throw;
  }
}

ProbeCall::~ProbeCall() { close(); }

void ProbeCall::close() {
  connection_->close(Deadline::after(kClosingPatience));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_.has_value(); });
}

void ProbeCall::send(ProbeType type, const std::vector<std::byte>& payload, std::uint64_t step) {
  connection_->send_copy(
      {.payload_bytes = std::uint32_t(payload.size()), .type = std::uint16_t(type), .step = step},
      payload);
}

ProbeFrame ProbeCall::wait(ProbeType type, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const auto come = [&] {
    return arrived_.contains(type) || arrived_.contains(ProbeType::kRefuse) || closed_;
  };
  if (!changed_.wait_until(lock, calling_.stop, deadline.time(), come)) {
    refuse_stopped();
    throw Error(ErrorCode::kDeadlineExceeded,
                fmt::format("{} did not answer in time ({})", address_, name_of(type)));
  }
  if (auto frame = arrived_.extract(type)) return std::move(frame.mapped());
  if (const auto refusal = arrived_.find(ProbeType::kRefuse); refusal != arrived_.end())
    throw Error(ErrorCode::kFailedPrecondition,
                fmt::format("{} refuses: {}", address_,
                            decode_probe_text(refusal->second.payload, ProbeType::kRefuse)));
  throw Error(*closed_);
}

std::string ProbeCall::ended() const {
  const std::lock_guard lock(mutex_);
  return closed_ ? closed_->what() : "";
}

void ProbeCall::rest(TimePoint until) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, calling_.stop, until, [this] { return closed_.has_value(); });
  refuse_stopped();
  if (closed_) throw Error(*closed_);
}

void ProbeCall::refuse_stopped() const {
  if (calling_.stop.stop_requested())
    throw Error(ErrorCode::kCancelled, "nobody waits for what is measured any more");
}

std::span<std::byte> ProbeCall::place_payload(const FrameHeader& header) {
  check_probe_length(header);
  bytes_.resize(std::max<std::size_t>(bytes_.size(), header.payload_bytes));
  return std::span(bytes_).first(header.payload_bytes);
}

void ProbeCall::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  const TimePoint now = arrival_time();
  const ProbeType type{header.type};
  if (type == ProbeType::kBytes) {
    if (calling_.tally != nullptr) calling_.tally->add(payload.size());
    return;
  }
  if (name_of(type).starts_with("unknown"))
    throw Error(ErrorCode::kDataLoss, fmt::format("{} is no `paceline probe`: it sent message {}",
                                                  address_, header.type));
  const std::lock_guard lock(mutex_);
  arrived_[type] = {header, {payload.begin(), payload.end()}, now};
  changed_.notify_all();
}

void ProbeCall::on_closed(const Error& error) {
  const std::lock_guard lock(mutex_);
  closed_ = error;
  changed_.notify_all();
}

}  // namespace paceline
