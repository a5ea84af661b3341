#include "models/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "paceline/error.h"

namespace paceline::models {
namespace {

// Levenshtein's distance, one row of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

template <typename T>
bool parse(const std::string& text, T& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](const std::string& a, const std::string& b) {
                                       return edit_distance(wanted, a) < edit_distance(wanted, b);
                                     });
  return fmt::format("did you mean {}? ({})", *best, fmt::join(candidates, ", "));
}

Settings::Settings(std::string_view model, std::span<const HyperParameter> parameters,
                   const std::map<std::string, std::string>& set)
    : set_(set) {
  std::vector<std::string> names;
  for (const HyperParameter& parameter : parameters) {
    values_[parameter.name] = parameter.default_text;
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : set) {
    if (!values_.contains(name)) {
      throw Error(ErrorCode::kUsage, fmt::format("--set {}: {} has no such hyper-parameter; {}",
                                                 name, model, nearest(name, names)));
    }
    values_[name] = value;
  }
}

void Settings::set_default(const std::string& name, std::string value) {
  if (!set_.contains(name)) values_.at(name) = std::move(value);
}

void Settings::set_default(const std::string& name, std::optional<std::int64_t> flag) {
  if (flag) set_default(name, std::to_string(*flag));
}

std::int64_t Settings::whole(const std::string& name, std::int64_t least) const {
  const std::string& text = values_.at(name);
  std::int64_t value = 0;
  if (parse(text, value) && value >= least) return value;
  throw Error(ErrorCode::kUsage,
              fmt::format("--set {}={}: must be a whole number from {} on", name, text, least));
}

double Settings::number(const std::string& name, double low, double high) const {
  const std::string& text = values_.at(name);
  double value = 0;
  if (parse(text, value) && value >= low && value <= high) return value;
  throw Error(ErrorCode::kUsage,
              fmt::format("--set {}={}: must be a number from {} to {}", name, text, low, high));
}

bool Settings::on(const std::string& name) const {
  const std::string& text = values_.at(name);
  if (text == "0" || text == "1") return text == "1";
  throw Error(ErrorCode::kUsage, fmt::format("--set {}={}: must be 0 or 1", name, text));
}

}  // namespace paceline::models
