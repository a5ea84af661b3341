#include "bench/fetch_rates.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "bench/bare_fetch.h"
#include "bench/train_run.h"

namespace paceline::bench {
namespace {

/// A way of fetching: the link, and whether the value is constant or written anew by the ps.
struct Fetched {
  std::string link;
  bool constant = false;

  std::string str() const { return link + (constant ? ", constant" : ""); }
};

Report run_fetch(const Fetched& fetched) {
  std::vector<std::string> arguments = {"train", "fetch",     "--ps", "1",      "--workers",
                                        "1",     "--threads", "1",    "--link", fetched.link};
  if (fetched.constant) arguments.emplace_back("--constant");
  return run_train(arguments);
}

/// The times that are measured in turn: of the workload, and of the loops it is compared with.
struct FetchTimes {
  std::vector<double> added, bare, socket_and_product;
};

void measure_bare(FetchTimes& times, const Fetched& fetched, const FetchShape& shape) {
  if (fetched.constant) return;
  if (fetched.link == "shm") return times.bare.push_back(added_by_rewriting(shape));
  times.bare.push_back(socket_exchange_us(shape));
  times.socket_and_product.push_back(added_by_socket(shape));
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

}  // namespace

void measure_fetch(Recorder& recorder) {
  for (const char* link : {"shm", "tcp"}) {
    measure_one(recorder, {link});
    measure_one(recorder, {link, true});
  }
}

}  // namespace paceline::bench
