// Predictions as a table, as JSON, as a picture, and as a line.
#pragma once

#include <span>
#include <string>

#include "predict/prediction.h"

namespace paceline {

/// Says what the hosts can do, with a line for those in a row that are alike: "node 0 to node 3,
/// each: 32 cores, 2,000 GFLOP/s, 180 GB/s, a link of 1 Gbit/s".
std::string hosts_text(std::span<const PredictedHost> hosts);
/// "Between two of them: 0.1 to 1 Gbit/s, 0.013 to 20 ms one way", as a line; empty where nothing
/// more is known than the links.
std::string pairs_text(std::span<const SimulatedPair> pairs);
/// A table: its head "way  steps/s  80% between  examples/s  × alone  of bound  the limit", and the
/// row of a way below it. `width` is that of the column of ways.
std::string prediction_head(std::size_t width);
std::string prediction_row(const Prediction& prediction, std::size_t width);
std::size_t width_of(std::span<const JobShape> shapes);
/// "Not tried within 30 s (--time-limit): sync, 4 ps + 8 workers; …"
std::string untried_text(std::span<const JobShape> shapes, double limit_s);
/// "11.2 steps/s (80%: 10.6 to 11.7), 3.9 × one process; the limit: …"
std::string prediction_line(const Prediction& prediction);
/// The flags of the fastest, which is the first, and of the fastest whose steps learn as much as
/// one process's. Lines.
std::string fastest_text(std::span<const Prediction> predictions);
/// A sentence about steps that learn less than those of other ways; empty when no way has such.
std::string convergence_note(std::span<const Prediction> predictions);
/// An object with the hosts' facts and a list of all ways.
std::string prediction_json(std::span<const Prediction> predictions, const std::string& model);
/// Speed against workers, a line for each strategy and number of parameter servers, as a script of
/// gnuplot.
std::string prediction_plot(std::span<const Prediction> predictions, const std::string& title,
                            const std::string& terminal, const std::string& output);

}  // namespace paceline
