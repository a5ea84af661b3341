#include <nlohmann/json.hpp>

#include "bench/figures.h"

namespace paceline::bench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Summary& summary) {
  return {{"median", summary.median},
          {"low", summary.low},
          {"high", summary.high},
          {"count", summary.count}};
}

Json json_of(const std::string& table, const Figure& figure) {
  Json json{{"case", table}, {"name", figure.name}, {"unit", figure.unit}};
  json["value"] = json_of(figure.value);
  if (figure.beside) {
    json["beside"] = {{"what", figure.beside->what},
                      {"value", json_of(figure.beside->value)},
                      {"ratio", json_of(figure.beside->ratio)}};
    for (const auto& [what, value] : figure.beside->terms) {
      json["beside"]["terms"].push_back({{"what", what}, {"value", value}});
    }
  }
  for (const Series& series : figure.series) {
    json["series"].push_back({{"name", series.name}, {"points", series.points}});
  }
  return json;
}

}  // namespace

std::string to_json(const Circumstances& circumstances, const std::vector<Table>& tables) {
  Json figures = Json::array();
  for (const Table& table : tables) {
    for (const Figure& figure : table.figures) figures.push_back(json_of(table.name, figure));
  }
  const Json json{
      {"version", 1},
      {"command", circumstances.command},
      {"date", circumstances.date},
      {"machine", {{"processor", circumstances.processor}, {"cores", circumstances.cores}}},
      {"paceline", circumstances.paceline},
      {"onednn", circumstances.onednn},
      {"repeats", circumstances.repeats},
      {"figures", figures}};
  return json.dump(2) + "\n";
}

}  // namespace paceline::bench
