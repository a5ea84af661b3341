// Predictions as a table, JSON, a picture, or a line.
#pragma once

#include <span>
#include <string>

#include "predict/prediction.h"
#include "predict/steps_beside.h"

namespace paceline {

/// Says what the hosts can do, with one line for equal hosts in a row: "node 0 to node 3, each: 32
/// cores, 2,000 GFLOP/s, 180 GB/s, a link of 1 Gbit/s".
std::string hosts_text(std::span<const PredictedHost> hosts);
/// Returns a line such as "Between two of them: 0.1 to 1 Gbit/s, 0.013 to 20 ms one way"; empty if
/// there are no pairs.
std::string pairs_text(std::span<const SimulatedPair> pairs);
/// Both return lines of a table: its head "way  steps/s  80% between  examples/s  × alone  of bound
/// the limit", and the row of one shape. `width` is the width of the first column.
std::string prediction_head(std::size_t width);
std::string prediction_row(const Prediction& prediction, std::size_t width);
std::size_t width_of(std::span<const JobShape> shapes);
/// Returns a line such as "Not tried within 30 s (--time-limit): sync, 4 ps + 8 workers; …".
std::string untried_text(std::span<const JobShape> shapes, double limit_s);
/// Returns a line such as "11.2 steps/s (80%: 10.6 to 11.7), 3.9 × one process; the limit: …".
std::string prediction_line(const Prediction& prediction);
/// `predictions` begins with the fastest shape. Returns lines with the flags of that shape and, if
/// it makes local steps, of the fastest shape without local steps; then convergence_note.
std::string fastest_text(std::span<const Prediction> predictions);
/// Returns a sentence that says which shapes' steps learn less than those of others; empty if no
/// shape has such steps.
std::string convergence_note(std::span<const Prediction> predictions);
/// Returns a JSON object with the model's name, a list of all shapes ("ways"), and a list of the
/// numbers of copies that ran at once with their speeds ("copies"; empty if none did).
std::string prediction_json(std::span<const Prediction> predictions, const std::string& model,
                            const StepsBeside& beside = {});
/// Returns a gnuplot script that draws speed against workers: a curve for each strategy, one for
/// the bound, and a line for one process.
std::string prediction_plot(std::span<const Prediction> predictions, const std::string& title,
                            const std::string& terminal, const std::string& output);

}  // namespace paceline
