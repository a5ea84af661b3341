#include "models/ptb_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/perplexity.h"
#include "models/ptb_graph.h"
#include "paceline/data.h"
#include "paceline/error.h"

namespace paceline::models {
namespace {

constexpr std::int64_t kLines = 16;  // that are computed at once

Vocabulary vocabulary_of(const SavedModel& saved) {
  const auto words = saved.data_names.find("words");
  if (words != saved.data_names.end()) return Vocabulary::of(words->second);
  throw Error(ErrorCode::kFailedPrecondition,
              saved.path +
                  " does not tell its words: a checkpoint of a run does, and a lone file "
                  "of variables cannot be used for a text");
}

std::vector<TextLine> read_lines(const Vocabulary& vocabulary, const std::string& path) {
  try {
    return vocabulary.read_lines(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
    throw Error(ErrorCode::kUsage, fmt::format("--data {}: {}", path, error.what()));
  }
}

/// Computes lines that begin without a state, some words of each at a time.
class LineCosts {
 public:
  LineCosts(const SavedModel& saved, const PtbConfig& config, std::int32_t end)
      : words_(config.unroll),
        end_(end),
        ptb_(build_ptb_lines(graph_, config, kLines, words_)),
        predictor_(graph_, outputs(), saved.path, {.modules = ptb_modules(config)}) {}

  /// Returns the perplexity of each of at most kLines lines.
  std::vector<Perplexity> of(std::span<const TextLine> lines) const {
    std::vector<Perplexity> found(lines.size());
    std::vector<Tensor> states;
    for (const Value& state : ptb_.states) {
      states.emplace_back(state.dtype(), Shape{std::int64_t(lines.size()), state.shape()[1]});
    }
    std::size_t longest = 0;
    for (const TextLine& line : lines) longest = std::max(longest, line.ids.size() + 1);
    for (std::size_t first = 0; first < longest; first += std::size_t(words_)) {
      add(lines, first, states, found);
    }
    return found;
  }

 private:
  std::vector<Value> outputs() const {
    std::vector<Value> all = {ptb_.losses};
    all.insert(all.end(), ptb_.next_states.begin(), ptb_.next_states.end());
    return all;
  }
  // Word i of the line between two ends; more ends follow.
  std::int32_t word_at(const TextLine& line, std::size_t i) const {
    return i >= 1 && i <= line.ids.size() ? line.ids[i - 1] : end_;
  }
  void add(std::span<const TextLine> lines, std::size_t first, std::vector<Tensor>& states,
           std::vector<Perplexity>& found) const {
    const auto words = std::size_t(words_);
    const Tensor inputs(DType::kInt32, {std::int64_t(lines.size()), words_});
    const Tensor targets(DType::kInt32, inputs.shape());
    for (std::size_t n = 0; n < lines.size(); ++n) {
      for (std::size_t t = 0; t < words; ++t) {
        inputs.data<std::int32_t>()[n * words + t] = word_at(lines[n], first + t);
        targets.data<std::int32_t>()[n * words + t] = word_at(lines[n], first + t + 1);
      }
    }
    std::vector<std::pair<Value, Tensor>> fed = {{ptb_.inputs, inputs}, {ptb_.targets, targets}};
    for (std::size_t i = 0; i < states.size(); ++i) fed.emplace_back(ptb_.states[i], states[i]);
    std::vector<Tensor> computed = predictor_.predict(fed);
    const std::span<const float> losses = computed[0].data<float>();
    for (std::size_t n = 0; n < lines.size(); ++n) {
      for (std::size_t t = 0; t < words && first + t <= lines[n].ids.size(); ++t) {
        found[n].add(double(losses[n * words + t]), 1);
      }
    }
    std::move(computed.begin() + 1, computed.end(), states.begin());
  }

  const std::int64_t words_;
  const std::int32_t end_;  // <eos>
  Graph graph_;
  const PtbLines ptb_;
  const Predictor predictor_;
};

}  // namespace

void infer_lines(const InferenceRequest& request, const PtbConfig& config) {
  const Vocabulary vocabulary = vocabulary_of(request.saved);
  const std::vector<TextLine> lines = read_lines(vocabulary, request.data);
  const LineCosts costs(request.saved, config, vocabulary.id("<eos>"));
  for (std::size_t first = 0; first < lines.size(); first += std::size_t(kLines)) {
    const auto some =
        std::span(lines).subspan(first, std::min(lines.size() - first, std::size_t(kLines)));
    const std::vector<Perplexity> found = costs.of(some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      request.give({{"line", std::int64_t(first + i + 1)},
                    {"perplexity", found[i].value()},
                    {"words", std::int64_t(some[i].ids.size())},
                    {"unknown", some[i].unknown}});
    }
  }
}

}  // namespace paceline::models
