#include "params/protocol/testing/virtual_job.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <tuple>

#include "params/protocol/ps_job.h"
#include "params/protocol/send_log.h"
#include "params/protocol/worker_job.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr int kPieces = 2;         // of each ps
constexpr Duration kNoticed = 5s;  // a lost peer, at the latest
constexpr Duration kLongestStep = 1s;
constexpr Duration kLongest = std::chrono::hours(1);

/// One frame of a step, from a worker to a ps.
struct StepFrame {
  enum class Kind : std::uint8_t { kBegin, kPiece, kEnd } kind;
  std::int64_t step = 0;
  std::uint32_t piece = 0;
};

/// One connection.
struct Wire {
  int worker = 0, ps = 0;
  std::uint64_t incarnation = 0;
  PeerId peer = 0;                          // what the machine of the ps calls the worker
  bool worker_open = true, ps_open = true;  // what each end knows
  bool cut = false;
  TimePoint to_ps{}, to_worker{};  // when the last message arrives
};

/// What a process of a worker and a ps say to each other, over all their connections.
struct Channel {
  using Deliver = std::function<void(PeerId wire)>;
  SendLog<Deliver> to_ps, to_worker;
  std::uint64_t handled_by_ps = 0, handled_by_worker = 0, resumed_at = 0;
  PeerId worker_wire = 0, ps_wire = 0;  // on which each end sends numbered messages; 0: none
  // Of the ps's end.
  std::int64_t step = -1;
  Fate fate = Fate::kDrop;
};

struct Ps {
  std::unique_ptr<PsJob> machine;
  bool ended = false;
  std::int64_t counted = 0;
};

struct Worker {
  std::unique_ptr<WorkerJob> machine;  // null: there is no process
  std::uint64_t incarnation = 0;
  bool training = false, done = false, left = false, leaves_early = false;
  std::int64_t step = -1;     // under way; −1: none
  bool sent = false;          // all of its frames were sent once
  std::set<int> awaited;      // ps tasks that have not answered it
  std::vector<PeerId> wires;  // by ps; 0: none
  TimePoint since{};          // when it began to wait
  TimePoint tick_at = TimePoint::max();
  Duration compute{};
};

class VirtualJob {
 public:
  explicit VirtualJob(const VirtualOptions& options) : options_(options), random_(options.seed) {
    declare_.last_step = options.last_step;
    declare_.aggregation = options.aggregation;
    for (int i = 0; i < options.ps; ++i) make_ps(i);
    for (int i = 0; i < options.workers; ++i) prepare_worker(i);
  }

  VirtualResult run() {
    while (!events_.empty() && now_ < TimePoint(kLongest) && result_.errors.size() < 10) {
      Event event = events_.top();
      events_.pop();
      now_ = event.at;
      ++result_.events;
      mix(std::uint64_t(now_.time_since_epoch().count()));
      event.act();
      if (all_ended()) break;
    }
    if (!all_ended()) fail("the job has not ended: " + standing());
    check_pieces();
    const Ps& first = *ps_.front();
    result_.global_step = first.machine->global_step();
    result_.applied = first.counted;
    if (result_.global_step != first.counted) {
      fail(fmt::format("{} steps were applied and {} counted", first.counted, result_.global_step));
    }
    result_.seconds = seconds(now_.time_since_epoch());
    return std::move(result_);
  }

 private:
  struct Event {
    TimePoint at;
    std::uint64_t number;
    std::function<void()> act;
    bool operator<(const Event& other) const {  // the earliest of a heap is on top
      return at != other.at ? at > other.at : number > other.number;
    }
  };

  static double seconds(Duration time) { return std::chrono::duration<double>(time).count(); }
  void fail(std::string why) {
    result_.errors.push_back(fmt::format("seed {} at {:.3f} s: {}", options_.seed,
                                         seconds(now_.time_since_epoch()), std::move(why)));
  }
  void mix(std::uint64_t number) {
    result_.hash = (result_.hash ^ number) * 0x100000001b3u + 0x9e3779b97f4a7c15u;
  }
  double uniform() { return double(random_() >> 11) * 0x1p-53; }
  bool happens(double probability) { return uniform() < probability; }
  Duration between(Duration least, Duration most) {
    return least + Duration(std::int64_t(uniform() * double((most - least).count())));
  }
  void after(Duration wait, std::function<void()> act) { at(now_ + wait, std::move(act)); }
  void at(TimePoint time, std::function<void()> act) {
    events_.push({std::max(time, now_), ++number_, std::move(act)});
  }

  // Parameter servers.

  void make_ps(int index) {
    PsJobOptions options;
    options.ps = index;
    options.workers = options_.workers;
    options.cluster_id = "virtual";
    options.incarnation = 1;
    options.join_timeout = 300s;
    options.reconnect_timeout = 30s;
    options.warm_steps = 2;
    ps_.push_back(std::make_unique<Ps>());
    ps_.back()->machine = std::make_unique<PsJob>(
        options, [](const Declare&) { return std::vector<std::int32_t>(); }, now_);
    tick_ps(index);
  }

  void tick_ps(int index) {
    Ps& ps = *ps_[std::size_t(index)];
    if (ps.ended) return;
    Outbox out;
    const TimePoint next = ps.machine->tick(now_, out);
    carry_out_ps(out);
    ps.ended = ps.machine->end(now_) != Membership::End::kNotYet;
    if (ps.ended) return;
    at(std::min(next, now_ + 1s), [this, index] { tick_ps(index); });
  }

  void carry_out_ps(Outbox& out) {
    for (Outbox::Action& action : out.actions()) {
      if (auto* send = std::get_if<Outbox::Send>(&action)) {
        to_worker(send->to, std::move(send->message));
      } else if (const auto* attach = std::get_if<Outbox::Attach>(&action)) {
        wires_.at(attach->from).peer = attach->to;
        wire_of_[attach->to] = attach->from;
      } else if (const auto* on = std::get_if<Outbox::GoOn>(&action)) {
        const PeerId id = wire_of_.at(on->peer);
        Channel& channel = channel_of(id);
        channel.to_worker.go_on(on->handled);
        channel.ps_wire = id;
        flush_to_worker(channel);
      } else if (const auto* close = std::get_if<Outbox::Close>(&action)) {
        // What was sent before still arrives.
        const PeerId id = wire_of_.at(close->peer);
        at(std::max(wires_.at(id).to_worker, now_), [this, id] { cut(id, Duration(0)); });
      }
    }
  }

  /// Something reaches the ps on this wire.
  template <typename Act>
  void ps_event(PeerId id, Act&& act) {
    Wire& wire = wires_.at(id);
    if (!wire.ps_open) return;
    Ps& ps = *ps_[std::size_t(wire.ps)];
    Outbox out;
    try {
      act(*ps.machine, wire, out);
    } catch (const Error& error) {
      fail(fmt::format("ps:{} refuses worker:{}: {}", wire.ps, wire.worker, error.what()));
      ps.machine->refuse(wire.peer, error.what(), out);
    }
    carry_out_ps(out);
  }

  void on_step_frame(PeerId id, const StepFrame& frame) {
    ps_event(id, [&](PsJob& job, Wire& wire, Outbox& out) {
      Channel& channel = channel_of(id);
      switch (frame.kind) {
        case StepFrame::Kind::kBegin:
          channel.step = frame.step;
          channel.fate = job.begin_step(wire.peer, frame.step);
          return;
        case StepFrame::Kind::kPiece:
          return apply(channel, wire, frame);
        case StepFrame::Kind::kEnd:
          end_step(job, channel, wire, frame.step, out);
          if (options_.plant == VirtualOptions::Plant::kEndTwice && wire.ps == 0 &&
              frame.step == 3) {
            job.end_step(wire.peer, frame.step, channel.fate, now_, out);
          }
          channel.step = -1;
          return answer(channel, frame.step);  // the new values
      }
    });
  }

  void apply(const Channel& channel, const Wire& wire, const StepFrame& frame) {
    if (channel.fate != Fate::kApply) return;
    ++pieces_[{wire.worker, wire.incarnation, frame.step, wire.ps, frame.piece}];
  }

  void end_step(PsJob& job, const Channel& channel, const Wire& wire, std::int64_t step,
                Outbox& out) {
    job.end_step(wire.peer, step, channel.fate, now_, out);
    if (channel.fate != Fate::kApply) return;
    ++ps_[std::size_t(wire.ps)]->counted;
    ended_.insert({wire.worker, wire.incarnation, step, wire.ps});
    if (wire.ps == 0) ended_on_first_[std::size_t(wire.worker)] = step + 1;
    if (wire.ps == 0 && !counted_.insert({wire.worker, step}).second) {
      fail(fmt::format("step {} of worker:{} counts twice", step, wire.worker));
    }
  }

  void check_pieces() {
    for (const auto& [key, count] : pieces_) {
      const auto& [worker, incarnation, step, ps, piece] = key;
      if (count != 1) {
        fail(fmt::format("piece {} on ps:{} of step {} of worker:{} was applied {} times", piece,
                         ps, step, worker, count));
      }
    }
    for (const auto& [worker, incarnation, step, ps] : ended_) {
      for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
        if (!pieces_.contains({worker, incarnation, step, ps, piece})) {
          fail(fmt::format("step {} of worker:{} has ended on ps:{} without piece {}", step, worker,
                           ps, piece));
        }
      }
    }
  }

  // The network.

  Duration delay() { return happens(0.02) ? between(1ms, 300ms) : between(50us, 5ms); }

  Channel& channel_of(PeerId wire) {
    const Wire& its = wires_.at(wire);
    return channels_[{its.worker, its.incarnation, its.ps}];
  }

  void over_wire_to_ps(PeerId id, std::function<void()> act) {
    Wire& wire = wires_.at(id);
    wire.to_ps = std::max(wire.to_ps, now_ + delay());
    at(wire.to_ps, [this, id, act = std::move(act)] {
      if (wires_.at(id).cut) return void(++result_.lost_messages);
      act();
    });
  }

  void over_wire_to_worker(PeerId id, std::function<void()> act) {
    Wire& wire = wires_.at(id);
    wire.to_worker = std::max(wire.to_worker, now_ + delay());
    at(wire.to_worker, [this, id, act = std::move(act)] {
      if (wires_.at(id).cut) return void(++result_.lost_messages);
      act();
    });
  }

  void flush_to_ps(Channel& channel) {
    const PeerId id = channel.worker_wire;
    while (id != 0 && channel.to_ps.has_next()) {
      over_wire_to_ps(id, [this, id, deliver = channel.to_ps.next()] {
        if (!wires_.at(id).ps_open) return;
        ++channel_of(id).handled_by_ps;
        deliver(id);
      });
    }
  }

  void flush_to_worker(Channel& channel) {
    const PeerId id = channel.ps_wire;
    while (id != 0 && channel.to_worker.has_next()) {
      over_wire_to_worker(id, [this, id, deliver = channel.to_worker.next()] {
        if (!wires_.at(id).worker_open) return;
        ++channel_of(id).handled_by_worker;
        deliver(id);
      });
    }
  }

  void to_worker(PeerId peer, ControlMessage message) {
    const bool wake = message.type == MessageType::kStepLimit;
    if (wake && options_.plant == VirtualOptions::Plant::kLostWake && ++wakes_ % 3 == 0) return;
    const PeerId wire = wire_of_.at(peer);
    const bool numbered = is_numbered(message.type);
    auto deliver = [this, message = std::move(message)](PeerId id) { on_message(id, message); };
    if (!numbered) return over_wire_to_worker(wire, [deliver, wire] { deliver(wire); });
    Channel& channel = channel_of(wire);
    channel.to_worker.push(deliver);
    flush_to_worker(channel);
  }

  void on_message(PeerId id, const ControlMessage& message) {
    mix(std::uint64_t(message.type));
    worker_event(id, [&](Worker& worker, const Wire& from) {
      Outbox out;
      worker.machine->received(from.ps, message, now_, out);
      if (message.type == MessageType::kWelcome) go_on(id, message.as<Welcome>().handled);
      carry_out_worker(from.worker, out);
    });
  }

  /// What the ps has not handled is sent again.
  void go_on(PeerId id, std::uint64_t handled) {
    Channel& channel = channel_of(id);
    if (options_.plant == VirtualOptions::Plant::kSendAllAgain) handled = channel.resumed_at;
    channel.resumed_at = handled;
    channel.to_ps.go_on(handled);
    channel.worker_wire = id;
    flush_to_ps(channel);
  }

  void answer(Channel& channel, std::int64_t step) {
    channel.to_worker.push([this, step](PeerId id) {
      worker_event(id, [&](Worker& worker, const Wire& from) {
        if (worker.step == step) worker.awaited.erase(from.ps);
      });
    });
    flush_to_worker(channel);
  }

  /// Both ends learn of it within `noticed`; what is on its way is lost.
  void cut(PeerId id, Duration noticed) {
    Wire& wire = wires_.at(id);
    if (wire.cut) return;
    wire.cut = true;
    after(between(Duration(0), noticed), [this, id] { ps_sees_end(id); });
    after(between(Duration(0), noticed), [this, id] { worker_sees_end(id); });
  }

  void ps_sees_end(PeerId id) {
    Wire& wire = wires_.at(id);
    Channel& channel = channel_of(id);
    if (channel.ps_wire == id) channel.ps_wire = 0;
    ps_event(id, [&](PsJob& job, Wire&, Outbox& out) {
      const PsJob::Ended ended = {.why = "the connection was cut",
                                  .handled = channel.handled_by_ps};
      job.closed(wire.peer, ended, now_, out);
    });
    wire.ps_open = false;
  }

  void worker_sees_end(PeerId id) {
    Wire& wire = wires_.at(id);
    if (!std::exchange(wire.worker_open, false)) return;
    Worker& worker = workers_[std::size_t(wire.worker)];
    if (!worker.machine || worker.wires[std::size_t(wire.ps)] != id) return;
    const Error error(ErrorCode::kUnavailable, "the connection was cut");
    worker.wires[std::size_t(wire.ps)] = 0;
    Channel& channel = channel_of(id);
    if (channel.worker_wire == id) channel.worker_wire = 0;
    const WorkerJob::Ended ended = {
        .where = "a ps", .handled = channel.handled_by_worker, .all_confirmed = worker.left};
    Outbox out;
    switch (worker.machine->closed(wire.ps, error, ended, now_, out)) {
      case WorkerJob::Closed::kExpected:
      case WorkerJob::Closed::kTryAgain:
        break;
      case WorkerJob::Closed::kCutOff:
        ++result_.come_backs;
        break;
      case WorkerJob::Closed::kLost:
        fail(fmt::format("worker:{} has lost ps:{}", wire.worker, wire.ps));
    }
    step_worker(wire.worker);
  }

  // Workers.

  void prepare_worker(int index) {
    Worker worker;
    worker.wires.resize(std::size_t(options_.ps));
    const double slowness =
        1 + (options_.spread - 1) * double(index) / double(std::max(1, options_.workers - 1));
    worker.compute = Duration(std::int64_t(20e6 * slowness));
    worker.leaves_early = happens(options_.early_leaves);
    workers_.push_back(std::move(worker));
    const Duration start = happens(options_.latecomers) ? between(0s, 3s) : between(0s, 500ms);
    after(start, [this, index] { start_worker(index); });
    if (happens(options_.deaths)) after(between(100ms, 4s), [this, index] { kill(index); });
    for (int i = 0; i < 3; ++i) {
      if (!happens(options_.cuts / 3)) continue;
      after(between(100ms, 4s), [this, index] { cut_one_of(index); });
    }
  }

  void start_worker(int index) {
    Worker& worker = workers_[std::size_t(index)];
    WorkerJobOptions options;
    options.worker = index;
    options.workers = options_.workers;
    for (int i = 0; i < options_.ps; ++i) options.ps.push_back(fmt::format("ps:{}", i));
    options.cluster_id = "virtual";
    options.incarnation = ++worker.incarnation;
    options.declare = declare_;
    options.join_timeout = 300s;
    options.reconnect_timeout = 30s;
    options.say_after = 1s;
    worker.machine = std::make_unique<WorkerJob>(options, now_);
    worker.step = -1;
    worker.training = worker.done = worker.left = false;
    step_worker(index);
  }

  void kill(int index) {
    Worker& worker = workers_[std::size_t(index)];
    if (!worker.machine || worker.left) return;
    worker.machine.reset();
    for (PeerId& id : worker.wires) {
      if (id != 0) cut(std::exchange(id, 0), kNoticed);
    }
    if (!happens(0.5)) return;
    ++result_.restarts;
    after(between(10ms, 3s), [this, index] { start_worker(index); });
  }

  void cut_one_of(int index) {
    Worker& worker = workers_[std::size_t(index)];
    const PeerId id = worker.wires[random_() % worker.wires.size()];
    if (id == 0 || !worker.machine || worker.left) return;
    cut(id, 1s);
  }

  template <typename Act>
  void worker_event(PeerId id, Act&& act) {
    const Wire& wire = wires_.at(id);
    Worker& worker = workers_[std::size_t(wire.worker)];
    if (!wire.worker_open || !worker.machine || worker.incarnation != wire.incarnation ||
        worker.wires[std::size_t(wire.ps)] != id) {
      return;
    }
    try {
      act(worker, wire);
    } catch (const Error& error) {
      fail(fmt::format("worker:{}: {}", wire.worker, error.what()));
    }
    step_worker(wire.worker);
  }

  void connect(int index, int ps) {
    const std::uint64_t incarnation = workers_[std::size_t(index)].incarnation;
    after(delay(), [this, index, ps, incarnation] {
      Worker& worker = workers_[std::size_t(index)];
      if (!worker.machine || worker.incarnation != incarnation) return;
      if (ps_[std::size_t(ps)]->ended) {
        worker.machine->connect_failed(ps, "the ps has ended", now_);
        return step_worker(index);
      }
      const PeerId id = ++wires_made_;
      Wire wire;
      wire.worker = index;
      wire.ps = ps;
      wire.incarnation = incarnation;
      wire.peer = id;
      wires_.emplace(id, wire);
      wire_of_[id] = id;
      worker.wires[std::size_t(ps)] = id;
      ps_event(id, [&](PsJob& job, Wire&, Outbox& out) { job.accepted(id, now_, out); });
      Outbox out;
      worker.machine->connected(ps, DType::kFloat32, out);
      carry_out_worker(index, out);
      step_worker(index);
    });
  }

  void carry_out_worker(int index, Outbox& out) {
    for (Outbox::Action& action : out.actions()) {
      if (const auto* to = std::get_if<Outbox::Connect>(&action)) connect(index, int(to->peer));
      if (auto* send = std::get_if<Outbox::Send>(&action)) {
        send_control(index, int(send->to), std::move(send->message));
      }
    }
  }

  Channel& channel(int index, int ps) {
    return channels_[{index, workers_[std::size_t(index)].incarnation, ps}];
  }

  void send_control(int index, int ps, ControlMessage message) {
    const bool numbered = is_numbered(message.type);
    auto deliver = [this, message = std::move(message)](PeerId id) {
      ps_event(id, [&](PsJob& job, Wire& wire, Outbox& out) {
        job.received(wire.peer, message, now_, out);
      });
    };
    const PeerId wire = workers_[std::size_t(index)].wires[std::size_t(ps)];
    if (numbered) return to_ps(channel(index, ps), deliver);
    if (wire != 0) over_wire_to_ps(wire, [deliver, wire] { deliver(wire); });
  }

  void to_ps(Channel& channel, Channel::Deliver deliver) {
    channel.to_ps.push(std::move(deliver));
    flush_to_ps(channel);
  }

  /// Whatever the worker can do now.
  void step_worker(int index) {
    Worker& worker = workers_[std::size_t(index)];
    if (!worker.machine || worker.left) return;
    Outbox out;
    try {
      worker.tick_at = worker.machine->tick(now_, out);
    } catch (const Error&) {
      return gone(worker);  // it gave up: its ps tasks have ended
    }
    carry_out_worker(index, out);
    const TimePoint next = worker.tick_at;
    if (next < TimePoint::max() && next != scheduled_[index]) {
      scheduled_[index] = next;
      at(next, [this, index, next] {
        if (scheduled_[index] == next) scheduled_[index] = TimePoint::max();
        step_worker(index);
      });
    }
    if (worker.machine->joined() || worker.training) train(index, worker);
  }

  void gone(Worker& worker) {
    worker.left = true;
    worker.machine.reset();
    for (PeerId& id : worker.wires) {
      if (id != 0) cut(std::exchange(id, 0), kNoticed);
    }
  }

  void train(int index, Worker& worker) {
    WorkerJob& machine = *worker.machine;
    if (!machine.initialised()) return initialise(index, worker);
    if (worker.done) return leave(index, worker);
    if (worker.step >= 0) {
      if (worker.sent && worker.awaited.empty()) end_own_step(index, worker);
      return;
    }
    if (machine.global_step() >= options_.last_step ||
        (worker.leaves_early && machine.next_step() > 5)) {
      return finish(index, worker);
    }
    if (!worker.training) worker.since = now_;
    worker.training = true;
    if (!machine.may_begin_step()) return;
    begin_own_step(index, worker);
  }

  bool all_joined() const {
    return std::ranges::all_of(workers_, [](const Worker& worker) {
      return worker.machine != nullptr && worker.machine->joined();
    });
  }

  /// Who does what, for the message of a job that does not end.
  std::string standing() const {
    std::string text;
    for (const auto& ps : ps_) {
      if (!ps->ended && workers_.size() < 10) text += ps->machine->members() + "; ";
    }
    for (const auto& [id, wire] : wires_) {
      if (!wire.ps_open || ps_[std::size_t(wire.ps)]->ended) continue;
      text += fmt::format("ps:{} has connection {} of worker:{}, {}; ", wire.ps, id, wire.worker,
                          wire.cut ? "cut" : "open");
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Worker& worker = workers_[i];
      if (worker.left || !worker.machine) continue;
      text +=
          fmt::format("worker:{} {}{}{} next step {} under way {} waits for {} answers; ", i,
                      worker.machine->joined() ? "joined" : "apart", worker.done ? ", done," : "",
                      worker.machine->may_begin_step() ? "" : ", may not begin,",
                      worker.machine->next_step(), worker.step, worker.awaited.size());
    }
    return text;
  }

  // The chief writes the variables, each of them once.
  void initialise(int index, Worker& worker) {
    if (index != 0) return worker.machine->wait_initialised(now_);
    if (options_.start_together && !all_joined()) {
      return after(10ms, [this, index] { step_worker(index); });
    }
    for (int ps = 0; ps < options_.ps; ++ps) {
      const auto key = std::pair(worker.incarnation, ps);
      if (!wrote_.insert(key).second || ps_[std::size_t(ps)]->machine->initialised()) continue;
      send_control(index, ps, {MessageType::kWriteEnd, std::int64_t{0}, 0});
    }
  }

  void begin_own_step(int index, Worker& worker) {
    note_wait(index, worker);
    worker.step = worker.machine->begin_step();
    worker.sent = false;
    worker.awaited.clear();
    for (int ps = 0; ps < options_.ps; ++ps) worker.awaited.insert(ps);
    note_ahead(worker);
    const std::uint64_t incarnation = worker.incarnation;
    const Duration takes = between(worker.compute / 2, worker.compute * 3 / 2);
    after(takes, [this, index, incarnation] {
      Worker& again = workers_[std::size_t(index)];
      if (!again.machine || again.incarnation != incarnation || again.step < 0) return;
      again.sent = true;
      again.since = now_;
      for (int ps = 0; ps < options_.ps; ++ps) send_step(index, ps);
      step_worker(index);
    });
  }

  void send_step(int index, int ps) {
    const Worker& worker = workers_[std::size_t(index)];
    const std::int64_t step = worker.step;
    std::vector<StepFrame> frames = {{StepFrame::Kind::kBegin, step, 0}};
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) {
      frames.push_back({StepFrame::Kind::kPiece, step, piece});
    }
    frames.push_back({StepFrame::Kind::kEnd, step, 0});
    // One after the other, as kernels finish them.
    Duration wait{};
    const std::uint64_t incarnation = worker.incarnation;
    for (const StepFrame& frame : frames) {
      after(wait, [this, index, ps, incarnation, frame] {
        const Worker& again = workers_[std::size_t(index)];
        if (!again.machine || again.incarnation != incarnation) return;
        to_ps(channel(index, ps), [this, frame](PeerId id) { on_step_frame(id, frame); });
      });
      wait += 3ms;
    }
  }

  void end_own_step(int index, Worker& worker) {
    note_wait(index, worker);
    worker.step = -1;
    worker.since = now_;
    after(Duration(0), [this, index] { step_worker(index); });
  }

  void note_wait(int index, const Worker& worker) {
    const double waited = seconds(now_ - worker.since);
    result_.longest_wait_s = std::max(result_.longest_wait_s, waited);
    // A peer that is lost is noticed; whoever waits for it may wait for several, one after another.
    const Duration most = (options_.workers + 3) * (kNoticed + kLongestStep);
    if (waited > seconds(most)) {
      fail(fmt::format("worker:{} has waited for {:.1f} s", index, waited));
    }
  }

  void note_ahead(const Worker& worker) {
    // By what the ps that counts knows: an answer may still be on its way.
    std::int64_t least = worker.step;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Worker& other = workers_[i];
      if (other.machine && !other.done && !other.left) least = std::min(least, ended_on_first_[i]);
    }
    result_.most_ahead = std::max(result_.most_ahead, worker.step - least);
  }

  void finish(int index, Worker& worker) {
    worker.done = true;
    Outbox out;
    worker.machine->set_done(out);
    carry_out_worker(index, out);
    // Whoever leaves early does not wait for the others.
    const Duration patience = worker.leaves_early ? 0s : 60s;
    const std::uint64_t incarnation = worker.incarnation;
    after(patience, [this, index, incarnation] {
      Worker& again = workers_[std::size_t(index)];
      if (again.machine && again.incarnation == incarnation) say_goodbye(index, again);
    });
    leave(index, worker);
  }

  void leave(int index, Worker& worker) {
    if (worker.machine->job_state().all_done) say_goodbye(index, worker);
  }

  void say_goodbye(int index, Worker& worker) {
    if (worker.left) return;
    Outbox out;
    worker.machine->leave(out);
    carry_out_worker(index, out);
    worker.left = true;
    for (const PeerId id : worker.wires) {
      if (id == 0) continue;
      at(wires_.at(id).to_ps + 1ms, [this, id] { cut(id, 1ms); });
    }
  }

  bool all_ended() const {
    return std::ranges::all_of(ps_, [](const auto& ps) { return ps->ended; });
  }

  const VirtualOptions options_;
  std::mt19937_64 random_;
  TimePoint now_{};
  std::uint64_t number_ = 0;
  std::priority_queue<Event> events_;
  Declare declare_;
  std::vector<std::unique_ptr<Ps>> ps_;
  std::vector<Worker> workers_;
  std::map<int, TimePoint> scheduled_;
  PeerId wires_made_ = 0;
  std::map<PeerId, Wire> wires_;
  std::map<PeerId, PeerId> wire_of_;  // by what the machine of a ps calls its worker
  std::map<std::tuple<int, std::uint64_t, int>, Channel> channels_;  // worker, incarnation, ps
  std::set<std::pair<std::uint64_t, int>> wrote_;
  std::map<std::tuple<int, std::uint64_t, std::int64_t, int, std::uint32_t>, int> pieces_;
  std::set<std::tuple<int, std::uint64_t, std::int64_t, int>> ended_;
  std::set<std::pair<int, std::int64_t>> counted_;
  std::map<std::size_t, std::int64_t> ended_on_first_;  // own steps, by worker
  std::int64_t wakes_ = 0;
  VirtualResult result_;
};

}  // namespace

VirtualResult run_virtual_job(const VirtualOptions& options) { return VirtualJob(options).run(); }

}  // namespace paceline
