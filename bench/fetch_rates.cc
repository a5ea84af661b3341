#include "bench/fetch_rates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/bare_fetch.h"
#include "bench/train_run.h"

namespace paceline::bench {
namespace {

/// A way of fetching: the link, how both tasks wait for each other, and whether the value is
/// constant or written anew by the ps.
struct Fetched {
  std::string link;
  Waiting waiting = Waiting::kSpinning;
  bool constant = false;

  std::string str() const {
    return fmt::format("{}{}{}", link, waiting == Waiting::kSleeping ? ", sleeping" : "",
                       constant ? ", constant" : "");
  }
};

Report run_fetch(const Fetched& fetched) {
  std::vector<std::string> arguments = {"train", "fetch",     "--ps", "1",      "--workers",
                                        "1",     "--threads", "1",    "--link", fetched.link};
  if (fetched.constant) arguments.emplace_back("--constant");
  if (fetched.waiting == Waiting::kSleeping) {
    arguments.insert(arguments.end(), {"--set", "spin=0"});
  }
  return run_train(arguments);
}

/// The times that are measured in turn: of the workload, and of the loops it is compared with.
struct FetchTimes {
  std::vector<double> added, bare, socket_and_product;
};

void measure_bare(FetchTimes& times, const Fetched& fetched, const FetchShape& shape) {
  if (fetched.constant) return;
  if (fetched.link == "shm")
    return times.bare.push_back(added_by_rewriting(shape, fetched.waiting));
  times.bare.push_back(socket_exchange_us(shape, fetched.waiting));
  times.socket_and_product.push_back(added_by_socket(shape, fetched.waiting));
}

void add_figures(Recorder& recorder, const Fetched& fetched, const FetchShape& shape,
                 const FetchTimes& times) {
  const std::string name = fmt::format("{}, {}, added", shape.str(), fetched.str());
  if (fetched.constant) return recorder.add(figure_of(name, "us", times.added));
  const char* const beside = fetched.link == "shm" ? "bare product" : "bare socket";
  recorder.add(figure_beside(name, "us", times.added, beside, times.bare));
  if (times.socket_and_product.empty()) return;
  recorder.add(figure_beside(name + " by a bare socket", "us", times.socket_and_product, beside,
                             times.bare));
}

void measure_one(Recorder& recorder, const Fetched& fetched) {
  const std::vector<FetchShape> shapes = models::fetch_shapes(models::fetch_model().settings());
  std::vector<FetchTimes> times(shapes.size());
  for (int repeat = 0; repeat < recorder.repeats(); ++repeat) {
    recorder.progress(fmt::format("{}, {} of {}", fetched.str(), repeat + 1, recorder.repeats()));
    const Report report = run_fetch(fetched);
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i].added.push_back(value_of(report, shapes[i].section(), "added_us"));
      measure_bare(times[i], fetched, shapes[i]);
    }
  }
  for (std::size_t i = 0; i < times.size(); ++i)
    add_figures(recorder, fetched, shapes[i], times[i]);
}

// Strong scaling: one batch is divided among workers, each of which fetches the value that the ps
// has written anew and computes with its part of the batch. Simulated devices take the time.
constexpr FetchShape kWholeBatch{128, 256, 256};
constexpr double kWholeBatchMs = 1.6;
constexpr double kPays = 0.9;  // of the ideal rate

/// Returns the batches per second that so many workers make together. They are as fast as each
/// other, so that each makes as many parts as the chief.
double batches_per_s(int workers) {
  FetchShape part = kWholeBatch;
  part.batch /= workers;
  const Report report = run_train({"train",         "fetch",
                                   "--ps",          "1",
                                   "--workers",     std::to_string(workers),
                                   "--threads",     "1",
                                   "--link",        "shm",
                                   "--device",      "sim",
                                   "--sim-step-ms", fmt::format("{}", kWholeBatchMs / workers),
                                   "--features",    std::to_string(part.features),
                                   "--batch",       std::to_string(part.batch),
                                   "--hidden",      std::to_string(part.hidden),
                                   "--set",         "spin=0"});
  return 1e6 / value_of(report, part.section(), "remote_us");
}

void measure_scaling(Recorder& recorder) {
  int last_paying = 0;
  for (const int workers : {1, 2, 4, 8, 16}) {
    const std::string name =
        fmt::format("a batch of {} divided by {}, {:.0f} us each", kWholeBatch.batch, workers,
                    1000 * kWholeBatchMs / workers);
    std::vector<double> rates, ideal;
    for (int i = 0; i < recorder.repeats(); ++i) {
      recorder.progress(fmt::format("{}, {} of {}", name, i + 1, recorder.repeats()));
      rates.push_back(batches_per_s(workers));
      ideal.push_back(1000 / kWholeBatchMs * workers);
    }
    const Figure figure = figure_beside(name, "batches/s", rates, "ideal", ideal);
    recorder.add(figure);
    if (figure.beside->ratio.median >= kPays) last_paying = workers;
  }
  recorder.note(fmt::format("Workers added up to {} bring at least {:.0f}% of the ideal rate",
                            last_paying, 100 * kPays));
}

}  // namespace

void measure_fetch(Recorder& recorder) {
  for (const char* link : {"shm", "tcp"}) {
    measure_one(recorder, {link});
    measure_one(recorder, {link, Waiting::kSpinning, true});
    measure_one(recorder, {link, Waiting::kSleeping});
  }
  measure_scaling(recorder);
}

}  // namespace paceline::bench
