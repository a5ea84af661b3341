#include "predict/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printed.h"
#include "dashboard/palette.h"
#include "params/strategy/strategies.h"
#include "predict/hosts_file.h"
#include "predict/roof.h"
#include "run/network_rate.h"

namespace paceline {
namespace {

std::string interval_text(const Prediction& it) { return rounded(it.low) + "–" + rounded(it.high); }

bool are_alike(const PredictedHost& one, const PredictedHost& other) {
  constexpr std::array kNumbers = {&PredictedHost::cores,
                                   &PredictedHost::flops_per_s,
                                   &PredictedHost::bytes_per_s,
                                   &PredictedHost::link_bytes_per_s,
                                   &PredictedHost::receive_bytes_per_s,
                                   &PredictedHost::others_share};
  return std::ranges::all_of(kNumbers,
                             [&](const auto number) { return one.*number == other.*number; });
}

std::string link_text(const PredictedHost& host) {
  if (host.link_bytes_per_s == 0) return "a link without a known limit";
  const auto gbps = [](double rate) { return rounded(rate / kPayloadOfGigabit, 3); };
  const std::string sends = gbps(host.link_bytes_per_s);
  const std::string receives = gbps(host.receive_bytes_per_s);
  if (host.receive_bytes_per_s == 0 || receives == sends)
    return fmt::format("a link of {} Gbit/s", sends);
  return fmt::format("a link of {} Gbit/s out and {} in", sends, receives);
}

}  // namespace

std::string hosts_text(std::span<const PredictedHost> hosts) {
  constexpr int kMostLines = 8;
  std::string text;
  int lines = 0;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t end = i + 1;
    while (end < hosts.size() && are_alike(hosts[i], hosts[end])) ++end;
    if (++lines > kMostLines) return text + "…\n";
    const std::string names =
        end - i == 1 ? hosts[i].name
                     : fmt::format("{} to {}, each", hosts[i].name, hosts[end - 1].name);
    text += fmt::format("{}: {} core{}, {} GFLOP/s, {} GB/s", names, hosts[i].cores,
                        hosts[i].cores == 1 ? "" : "s", rounded(hosts[i].flops_per_s * 1e-9, 3),
                        rounded(hosts[i].bytes_per_s * 1e-9, 3));
    if (hosts.size() > 1) text += ", " + link_text(hosts[i]);
    if (is_beside_others(hosts[i].others_share)) {
      text += ", measured " + beside_others(hosts[i].others_share);
    }
    text += "\n";
    i = end;
  }
  return text;
}

std::string pairs_text(std::span<const SimulatedPair> pairs) {
  if (pairs.empty()) return "";
  const auto range = [&](double SimulatedPair::*number, double scale, const char* unit) {
    const auto [least, most] = std::ranges::minmax(pairs, {}, number);
    const std::string from = rounded(least.*number * scale, 3),
                      to = rounded(most.*number * scale, 3);
    return from == to ? fmt::format("{} {}", from, unit)
                      : fmt::format("{} to {} {}", from, to, unit);
  };
  return fmt::format("Between two of them: {}, {} one way\n",
                     range(&SimulatedPair::bytes_per_s, 1 / kPayloadOfGigabit, "Gbit/s"),
                     range(&SimulatedPair::latency_s, 1e3, "ms"));
}

std::size_t width_of(std::span<const JobShape> shapes) {
  std::size_t width = 11;
  for (const JobShape& each : shapes) width = std::max(width, each.text().size());
  return width;
}

std::string prediction_head(std::size_t width) {
  return fmt::format("{:<{}}  {:>8}  {:>13}  {:>10}  {:>7}  {:>8}  {}\n", "way", width, "steps/s",
                     "80% between", "examples/s", "× alone", "of bound", "the limit");
}

std::string prediction_row(const Prediction& it, std::size_t width) {
  // The dash between two numbers takes three bytes but one column.
  return fmt::format("{:<{}}  {:>8}  {:>15}  {:>10}  {:>7}  {:>8.2f}  {}\n", it.shape.text(), width,
                     rounded(it.steps_per_s), interval_text(it), rounded(it.examples_per_s),
                     times_of(it.times_alone), it.of_bound, it.limit);
}

std::string untried_text(std::span<const JobShape> shapes, double limit_s) {
  std::string names;
  for (const JobShape& shape : shapes) names += (names.empty() ? "" : "; ") + shape.text();
  return fmt::format("Not tried within {} s (--time-limit): {}\n", limit_s, names);
}

std::string prediction_line(const Prediction& it) {
  return fmt::format("{} steps/s (80%: {} to {}{}), {} × one process; the limit: {}",
                     rounded(it.steps_per_s), rounded(it.low), rounded(it.high),
                     it.measured ? "" : "; nothing was measured", times_of(it.times_alone),
                     it.limit);
}

std::string fastest_text(std::span<const Prediction> predictions) {
  const auto line = [](const char* which, const Prediction& it) {
    const std::string flags = flags_of(it.shape);
    if (flags.empty()) return fmt::format("{}: one process, without --ps and --workers\n", which);
    return fmt::format("{}: {} ({} × one process)\n", which, flags, times_of(it.times_alone));
  };
  std::string text = line("The fastest", predictions.front());
  const auto other = std::ranges::find_if(
      predictions, [](const Prediction& each) { return !each.shape.makes_local_steps(); });
  if (other != predictions.begin() && other != predictions.end()) {
    text += line("Without local steps", *other);
  }
  const std::string note = convergence_note(predictions);
  return note.empty() ? text : text + note + "\n";
}

std::string convergence_note(std::span<const Prediction> predictions) {
  const auto found = std::ranges::find_if(
      predictions, [](const Prediction& each) { return each.shape.makes_local_steps(); });
  if (found == predictions.end()) return {};
  return fmt::format(
      "Workers of local_sgd make {} steps on their own between two exchanges: each of these steps "
      "learns less than one of the other ways (docs/strategies.md).",
      found->shape.strategy.local_steps);
}

std::string prediction_json(std::span<const Prediction> predictions, const std::string& model,
                            const StepsBeside& beside) {
  nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
  for (const Prediction& it : predictions) {
    shapes.push_back(
        {{"way", it.shape.text()},
         {"flags", flags_of(it.shape)},
         {"strategy", it.shape.kind().name},
         {"ps", it.shape.ps},
         {"workers", it.shape.workers},
         {"towers", it.shape.towers},
         {"wire", travelling_name(it.shape.wire.numbers.type)},
         {"top_k", it.shape.wire.numbers.kept},
         {"accumulate", it.shape.accumulate},
         {"local_steps", it.shape.makes_local_steps() ? it.shape.strategy.local_steps : 0},
         {"steps_per_s", it.steps_per_s},
         {"low", it.low},
         {"high", it.high},
         {"measured", it.measured},
         {"examples_per_s", it.examples_per_s},
         {"times_alone", it.times_alone},
         {"of_bound", it.of_bound},
         {"limit", it.limit},
         {"limited_by", name_of(it.limited_by)}});
  }
  nlohmann::ordered_json copies = nlohmann::ordered_json::array();
  for (const auto& [number, made] : beside.measured()) {
    copies.push_back({{"copies", number},
                      {"steps_per_s", made.steps_per_s},
                      {"step_seconds", made.seconds},
                      {"busy_cores_each", made.busy_cores},
                      {"alone_steps_per_s", 1 / beside.alone_s()}});
  }
  const nlohmann::ordered_json all = {{"model", model}, {"ways", shapes}, {"copies", copies}};
  return all.dump(2) + "\n";
}

// Draws one curve for each strategy, from its fastest shapes: the names of all shapes would fill
// the picture.
std::string prediction_plot(std::span<const Prediction> predictions, const std::string& title,
                            const std::string& terminal, const std::string& output) {
  std::map<std::string, std::map<int, double>> speeds;  // by strategy and workers
  std::map<int, double> bounds;
  double alone = 0;
  int most_workers = 1;
  for (const Prediction& it : predictions) {
    const int workers = it.shape.workers;
    if (it.shape.is_one_process()) {
      alone = it.steps_per_s;
      continue;
    }
    std::string name(it.shape.kind().name);
    if (it.shape.makes_local_steps()) name += fmt::format(" H={}", it.shape.strategy.local_steps);
    double& speed = speeds[name][workers];
    speed = std::max(speed, it.steps_per_s);
    const double bound = it.of_bound > 0 ? it.steps_per_s / it.of_bound : 0;
    bounds[workers] = std::max(bounds[workers], bound);
    most_workers = std::max(most_workers, workers);
  }
  std::string data, plots;
  const auto add = [&](const std::string& name, const std::map<int, double>& points,
                       const std::string& style) {
    const std::string block = fmt::format("$line{}", std::ranges::count(plots, '\n'));
    data += block + " << EOD\n";
    for (const auto& [workers, speed] : points) data += fmt::format("{} {}\n", workers, speed);
    data += "EOD\n";
    plots += fmt::format("{} using 1:2 with {} title '{}', \\\n", block, style, name);
  };
  std::size_t number = 0;
  for (const auto& [name, points] : speeds) {
    add(name, points,
        fmt::format("linespoints lw 2 pt 7 ps 0.7 linecolor rgb '{}'", colour_of_curve(number++)));
  }
  const std::string grey = colour_of("quiet");
  add("the bound", bounds,
      fmt::format("linespoints dashtype 2 pt 6 ps 0.5 linecolor rgb '{}'", grey));
  return fmt::format(R"(set terminal {} noenhanced size 900,480 background rgb 'white'
set output '{}'
set title '{}, of the fastest shapes of each strategy'
set border 3 linecolor rgb '#666666'
set tics nomirror
set grid linetype 1 linewidth 0.5 linecolor rgb '#dddddd'
set xlabel 'workers'
set ylabel 'steps/s of all workers'
set xrange [0:{}]
set yrange [0:*]
set key outside right top Left reverse
{}plot {}{} with lines linecolor rgb '{}' title 'one process'
)",
                     terminal, output, title, most_workers + 0.5, data, plots, alone, grey);
}

}  // namespace paceline
