#include "dashboard/page.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "dashboard/columns.h"
#include "run/report/activities.h"

namespace paceline {
namespace {

void put_in(std::string& page, std::string_view mark, const std::string& text) {
  const std::size_t at = page.find(mark);
  PACELINE_CHECK(at != page.npos);
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string whole_page() {
  std::string page(kPage);
  nlohmann::ordered_json words;
  for (const ActivityWords& each : kActivityWords) words[std::string(each.name)] = each.label;
  put_in(page, "%ACTIVITIES%", words.dump());
  put_in(page, "%TASK_COLUMNS%", columns_json(task_columns()));
  put_in(page, "%LINK_COLUMNS%", columns_json(link_columns()));
  return page;
}

}  // namespace paceline
