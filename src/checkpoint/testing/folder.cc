#include "checkpoint/testing/folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace paceline::testing {

std::string Folder::write(const std::string& name, std::string_view content) const {
  std::ofstream file(path(name), std::ios::binary | std::ios::trunc);
  file << content << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path(name));
  return path(name);
}

std::string Folder::read(const std::string& name) const {
  std::ifstream file(path(name), std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
    names.push_back(std::filesystem::relative(entry.path(), path()));
  }
  std::ranges::sort(names);
  return names;
}

std::string safetensors_bytes(const std::string& json, const std::string& data) {
  std::string length(sizeof(std::uint64_t), '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = char(json.size() >> (8 * i));
  return length + json + data;
}

}  // namespace paceline::testing
