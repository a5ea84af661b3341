// The shapes of jobs that predictions compare: all shapes, the shapes beside a run's own, and those
// from which --strategy auto chooses.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/plain_text.h"
#include "base/print_text.h"
#include "base/real_clock.h"
#include "base/text_file.h"
#include "paceline/error.h"
#include "predict/growing_table.h"
#include "predict/prediction_text.h"
#include "predict/shape_predictor.h"
#include "run/gnuplot.h"
#include "train/planned_only.h"

namespace paceline {
namespace {

PredictedStep step_of(const PlannedSession& session) {
  PredictedStep step{.model = session.options.model,
                     .request = {},
                     .examples = double(session.options.examples_per_step)};
  step.request.graph = &session.trainings[0].graph();
  step.request.training = session.trainings.data();
  for (const Value& value : session.options.watch) {
    if (&value.graph() == step.request.graph) step.request.fetches.push_back(value);
  }
  return step;
}

// Runs copies of this command at once, if somebody can, and says why not if they fail.
StepsBeside measured_beside(const ShapePredictor& predictor, std::span<const JobShape> shapes,
                            const PredictionOptions& options) {
  StepsBeside beside(predictor.seconds_alone());
  if (options.copies_by.empty()) return beside;
  for (const int copies : predictor.copies_to_run(shapes)) {
    const CopiesAnswer answer = run_copies(options.copies_by, copies);
    if (answer.paces.empty()) {
      print_text(stderr, plain_lines(answer.why + "\n"));
      break;
    }
    beside.add(answer.paces);
  }
  return beside;
}

}  // namespace

std::vector<Prediction> predict_shapes(const PredictedStep& step, const Cluster& cluster,
                                       const PredictionOptions& options) {
  if (cluster.train.sync_batch_norm) {
    throw Error(ErrorCode::kUsage, "--sync-batch-norm is not predicted (docs/predictions.md)");
  }
  const std::string why_not = why_not_predicted(cluster, options);
  if (!why_not.empty()) throw Error(ErrorCode::kUsage, why_not);
  ShapePredictor predictor(step, cluster, options);
  const JobShape own = predictor.own_shape();
  ShapesAsked asked = predictor.asked();
  if (options.this_strategy && !own.is_one_process()) asked.strategy.name = own.strategy.name;
  if (options.this_wire) asked.wire = own.wire;
  std::vector<JobShape> shapes = shapes_to_try(asked);
  for (JobShape& shape : shapes) predictor.place(shape);
  // The cluster's own shape comes after one process, with its tasks where they are.
  if (!own.is_one_device()) {
    std::erase_if(shapes, [&](const JobShape& shape) { return shape.text() == own.text(); });
    shapes.insert(shapes.begin() + 1, own);
  }
  const StepsBeside beside = measured_beside(predictor, shapes, options);
  predictor.learn_beside(beside);
  print_text(stdout, predictor.facts() + beside.text() + "\n");
  std::vector<Prediction> all = print_predictions(predictor.job(), shapes, options.time_limit_s);
  print_text(stdout, "\n" + fastest_text(all));
  print_text(stdout,
             "Not counted: how many steps each way needs to learn as much (docs/strategies.md), "
             "input, checkpoints and evaluations.\n");
  if (!options.json.empty()) {
    write_text_file("the prediction", options.json, prediction_json(all, step.model, beside));
  }
  if (!options.plot.empty()) {
    const std::string title = step.model + ": expected speed";
    write_text_file("the picture", options.plot,
                    drawn_by_gnuplot(options.plot,
                                     [&](const std::string& terminal, const std::string& picture) {
                                       return prediction_plot(all, title, terminal, picture);
                                     }));
  }
  return all;
}

std::vector<Prediction> compare_shapes(const PredictedStep& step, const Cluster& cluster,
                                       const PredictionOptions& options) {
  if (cluster.train.sync_batch_norm || !why_not_predicted(cluster, options).empty()) return {};
  const ShapePredictor predictor(step, cluster, options);
  const JobShape own = predictor.own_shape();
  ShapesAsked asked = predictor.asked();
  asked.strategy.name.clear();
  asked.wire = own.wire;  // no shape rounds more than the user asked for
  std::vector<JobShape> shapes = shapes_to_try(asked);
  std::erase_if(shapes, [&](const JobShape& shape) {
    // A limit on the lead of fast workers speeds nothing up.
    const bool has_tasks = cluster.process == Cluster::Process::kLauncher && !options.any_workers;
    return shape.kind().limits_lead || (shape.is_one_process() && has_tasks) ||
           shape.towers != cluster.towers;
  });
  for (JobShape& shape : shapes) predictor.place(shape);
  if (const std::string why = predictor.why_not_measured(); !why.empty()) {
    print_text(stderr,
               "The ways are compared by FLOPs and bytes; nothing was measured: " + why + "\n");
  }
  PredictedJob job = predictor.job();
  job.gives_up = gives_up_after(options.time_limit_s);
  Predictions all = predict_all(job, shapes);
  if (!all.untried.empty()) {
    print_text(stderr, untried_text(all.untried, options.time_limit_s));
  }
  return std::move(all.made);
}

MakeObserver show_shapes(const PredictionOptions& options) {
  return planned_only([options](const PlannedSession& session) {
    if (session.trainings.empty()) return false;
    predict_shapes(step_of(session), session.cluster, options);
    return true;
  });
}

MakeObserver list_shapes(const PredictionOptions& options,
                         std::function<void(std::vector<Prediction>)> list) {
  return planned_only([options, list = std::move(list)](const PlannedSession& session) {
    if (session.trainings.empty()) return false;
    if (session.trainings.size() == 1) {
      list(compare_shapes(step_of(session), session.cluster, options));
    }
    return true;
  });
}

RunPrediction predict_run(const PredictedStep& step, const Cluster& cluster,
                          const PredictionOptions& options,
                          const std::optional<PredictedHost>& here) {
  constexpr Duration kPatience = std::chrono::milliseconds(250);
  constexpr double kWorthSaying = 1.1;
  // One process is recommended if it is this many times as fast, since it needs no further
  // machines.
  constexpr double kFasterAlone = 1.03;
  const ShapePredictor predictor(step, cluster, options, here);
  const Prediction alone = predict_alone(predictor.job());
  RunPrediction made{.own = predict(predictor.job(), predictor.own_shape(), alone),
                     .better = {},
                     .machine = predictor.here()};
  RealClock clock;
  const TimePoint begun = clock.now();
  std::optional<Prediction> local;
  ShapesAsked asked = predictor.asked();
  asked.strategy.name.clear();
  asked.ps.reset();
  for (JobShape shape : shapes_to_try(asked)) {
    if (!shape.is_one_process() && clock.now() - begun > kPatience) break;
    if (shape.text() == made.own.shape.text()) continue;
    predictor.place(shape);
    const Prediction& other = made.others.emplace_back(predict(predictor.job(), shape, alone));
    // Local steps learn less per step, so they are recommended only if nothing else is better.
    std::optional<Prediction>& better = shape.makes_local_steps() ? local : made.better;
    const double best = better ? better->times_alone : made.own.times_alone;
    const double worth = better ? 1 : shape.is_one_process() ? kFasterAlone : kWorthSaying;
    if (other.times_alone > worth * best) better = other;
  }
  if (!made.better) made.better = std::move(local);
  return made;
}

}  // namespace paceline
