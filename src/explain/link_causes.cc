// Causes in the links between tasks.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "explain/causes.h"
#include "net/link_kind.h"

namespace paceline {
namespace {

constexpr double kLeastForLinks = 0.15;  // of the time
constexpr double kFull = 0.7;            // of what a link can carry
constexpr double kMuchSlower = 0.55;     // of the rate that a link could have
// The least bytes of a step for which links matter: if there are fewer, the time goes to messages.
constexpr double kLeastBytes = 2e5;
constexpr double kMegabyte = 1e6;

/// The links of one worker that use the network.
struct Network {
  const TaskReport* worker = nullptr;
  double step_bytes = 0;                    // both ways
  double sent = 0, received = 0, most = 0;  // bytes a second
  // Bytes a second in the busier direction, while the worker transferred.
  double rate = 0;
  // The share of the time for which the worker, or its round, waited for the network.
  double held_up = 0;

  double busier() const { return std::max(sent, received); }
};

// In rounds, a transfer continues while the worker waits for the end of the round, which cannot end
// before the transfer does.
Network network_of(const TaskReport& worker, bool in_step) {
  Network network{.worker = &worker};
  for (const LinkReport& link : worker.links) {
    if (!link_traits(link.kind).on_network) continue;
    network.sent += link.sent.value_or(0);
    network.received += link.received.value_or(0);
    network.step_bytes += link.step_sent.value_or(0) + link.step_received.value_or(0);
    network.most = std::max(network.most, link.most.value_or(0));
  }
  const double hidden = worker.hidden_ms.value_or(0) * 1e-3 * worker.steps_per_s.value_or(0);
  const double time = RunFacts::transfer(worker) + std::min(hidden, 1.0);
  network.held_up = RunFacts::transfer(worker);
  if (in_step) network.held_up += std::min(hidden, RunFacts::share(worker, "wait"));
  if (time > 0) network.rate = network.busier() / std::min(1.0, time);
  return network;
}

class Links {
 public:
  explicit Links(const RunFacts& facts) : facts_(facts) {
    for (const TaskReport* const worker : facts.workers()) {
      const Network network = network_of(*worker, facts.in_step());
      // Some systems do not tell how much their links carried.
      const bool is_told = network.busier() > 0;
      if (network.step_bytes < kLeastBytes || !is_told) continue;
      networks_.push_back(network);
      most_ = std::max(most_, network.most);
    }
  }

  std::vector<Finding> found() const {
    if (networks_.empty()) return {};
    std::vector<Finding> found = full();
    if (found.empty()) found = slower_than_others();
    if (found.empty()) found = slower_than_told();
    return found;
  }

 private:
  Finding with_advice(Finding found, double share) const {
    const double most = RunFacts::gain_without(share);
    found.gain = most;
    found.advice = "With a faster link, up to";
    if (const auto shape = best_other_shape(facts_); shape && shape->gain >= kWorthSaying) {
      found.advice = shape->flags;
      found.gain = std::min(most, shape->gain);
    }
    return found;
  }

  // Finds a full link. The link is wide enough if a narrower wire would leave hardly anything to
  // wait for.
  Finding full_link(const std::string& task, double carries, double share) const {
    constexpr double kNearlyAll = 0.85;
    Finding found{
        .cause = Limit::kLink,
        .task = task,
        .sentence = fmt::format("{}'s link carries {:.0f} MB/s of the {:.0f} that it can, and "
                                "the workers wait {:.0f}% of their time for it.",
                                task, carries / kMegabyte, most_ / kMegabyte, 100 * share)};
    const auto wire = narrower_wire(facts_);
    const double least = std::max(kWorthSaying, kNearlyAll * RunFacts::gain_without(share));
    if (!wire || wire->gain < least) return with_advice(std::move(found), share);
    found.cause = Limit::kWire;
    found.advice = wire->flags;
    found.gain = wire->gain;
    return found;
  }

  std::vector<Finding> full() const {
    if (most_ <= 0) return {};
    const double share = facts_.mean_transfer() + facts_.mean_share("wait");
    if (share < kLeastForLinks) return {};
    std::map<std::string, std::pair<double, double>> ps;
    for (const Network& network : networks_) {
      for (const LinkReport& link : network.worker->links) {
        if (!link_traits(link.kind).on_network) continue;
        ps[link.to].first += link.received.value_or(0);
        ps[link.to].second += link.sent.value_or(0);
      }
    }
    std::string busiest;
    double carries = 0;
    for (const auto& [task, rates] : ps) {
      if (std::max(rates.first, rates.second) <= carries) continue;
      busiest = task;
      carries = std::max(rates.first, rates.second);
    }
    for (const Network& network : networks_) {
      if (network.busier() <= carries) continue;
      busiest = network.worker->task;
      carries = network.busier();
    }
    if (carries < kFull * most_) return {};
    return {full_link(busiest, carries, share)};
  }

  // Finds workers that transfer their bytes more slowly than others do.
  std::vector<Finding> slower_than_others() const {
    std::vector<Finding> found;
    double best = 0;
    for (const Network& network : networks_) best = std::max(best, network.rate);
    std::vector<double> waits;
    for (const TaskReport* const each : facts_.workers()) {
      waits.push_back(RunFacts::share(*each, "wait"));
    }
    const Others wait(std::move(waits));
    for (const Network& network : networks_) {
      if (network.held_up < kLeastForLinks || network.rate > kMuchSlower * best) continue;
      const double saved = network.held_up * (1 - network.rate / best);
      found.push_back(slow_link(network.worker->task, network.rate, best, "those of others",
                                facts_.in_step() ? gain_of_round(network, saved, wait)
                                                 : facts_.gain_without(*network.worker, saved)));
    }
    return found;
  }

  // In rounds, a contribution may still be on its way while its worker already waits for the end of
  // the round, as all other workers do. Only the prediction knows how much waiting remains if the
  // contribution arrives sooner.
  double gain_of_round(const Network& slow, double saved, const Others& wait) const {
    const double others = wait.least(RunFacts::share(*slow.worker, "wait"));
    const double own = RunFacts::gain_without(saved), all = RunFacts::gain_without(others);
    const auto& expected = facts_.run().expected;
    const double most = expected ? expected->steps_per_s / facts_.steps_per_s() : all;
    return facts_.workers().size() < 2 ? own : std::max(own, std::min(all, most));
  }

  // If all links are slower than the network is said to be, the link that they share is the cause.
  std::vector<Finding> slower_than_told() const {
    const double share = facts_.mean_transfer();
    if (most_ <= 0 || share < kLeastForLinks || !ps_are_idle()) return {};
    double carries = 0;
    for (const Network& network : networks_) carries += network.rate;
    if (carries > kMuchSlower * most_) return {};
    const bool one = networks_.size() == 1;
    const std::string task =
        one || facts_.ps().size() != 1 ? networks_.front().worker->task : facts_.ps().front()->task;
    return {slow_link(task, carries, most_, "the network",
                      RunFacts::gain_without(share * (1 - carries / most_)))};
  }

  static Finding slow_link(const std::string& task, double rate, double other,
                           const std::string& whose, double gain) {
    return {.cause = Limit::kTaskLink,
            .task = task,
            .sentence = fmt::format("{}'s link is slow: it carries {:.1f} MB/s while it is waited "
                                    "for, and {} {:.1f}.",
                                    task, rate / kMegabyte, whose, other / kMegabyte),
            .advice = "With a link like that",
            .gain = gain};
  }

  bool ps_are_idle() const {
    constexpr double kMostlyApplies = 0.5;
    return std::ranges::none_of(facts_.ps(), [](const TaskReport* ps) {
      return RunFacts::share(*ps, "apply") > kMostlyApplies;
    });
  }

  const RunFacts& facts_;
  std::vector<Network> networks_;
  double most_ = 0;
};

}  // namespace

std::vector<Finding> slow_links(const RunFacts& facts) { return Links(facts).found(); }

}  // namespace paceline
