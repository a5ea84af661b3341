#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "cli/completion/shell_completion.h"

namespace paceline {
namespace {

const char* const kZshScript = R"(#compdef {command}
{function}() {{
  local line={command} i typed=1
  for ((i = 2; i < CURRENT; i++)); do
    case "$line ${{words[i]}}" in ({paths}) line+=" ${{words[i]}}" typed=$i ;; esac
  done
  words=("$line" "${{(@)words[typed+1,-1]}}")
  ((CURRENT -= typed - 1))
  case "$line" in
{lines}  esac
}}
if [[ $funcstack[1] == {function} ]]; then {function} "$@"; else compdef {function} {command}; fi
)";

// Returns the text for use in single quotes, with a backslash before each character that has a
// meaning for _arguments or _describe.
std::string quoted(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// ":FILE:_files"
std::string value_spec(const Flag& flag) {
  std::string action;
  switch (what_it_takes(flag)) {
    case Takes::kNothing:
      return "";
    case Takes::kText:
      if (!flag.completions.empty()) {
        action = fmt::format("compadd -S \"\" {}", fmt::join(flag.completions, " "));
      }
      break;
    case Takes::kFile:
      action = "_files";
      break;
    case Takes::kFolder:
      action = "_files -/";
      break;
    case Takes::kChoice:
      action = fmt::format("({})", fmt::join(choices_of(flag.placeholder), " "));
      break;
  }
  const bool is_flag = flag.name.starts_with('-');
  std::string spec =
      fmt::format(":{}:{}", quoted(is_flag ? flag.placeholder : flag.name, ":\\"), action);
  for (int more = 1; more < flag.values; ++more) spec += spec.substr(0, spec.size() / more);
  return spec;
}

std::string flag_spec(const Flag& flag) {
  const bool value = !flag.placeholder.empty();
  return fmt::format("'{}{}{}[{}]{}'", flag.repeats ? "*" : "", flag.name,
                     value && flag.values == 1 ? "=" : "", quoted(flag.help, "[]:\\"),
                     value_spec(flag));
}

std::string case_of_node(const CommandNode& node) {
  std::vector<std::string> words, specs;
  for (const CommandNode::Word& word : node.words) {
    words.push_back(fmt::format("'{}{}'", quoted(word.text, ":\\"),
                                word.help.empty() ? "" : ":" + quoted(word.help, "\\")));
  }
  for (const Flag& flag : node.flags) specs.push_back(flag_spec(flag));
  for (const Flag& argument : node.positionals) specs.push_back("'" + value_spec(argument) + "'");
  std::string text = fmt::format("    ('{}')\n", node.path);
  if (!words.empty()) {
    text += fmt::format("      local -a next=({})\n", fmt::join(words, "\n        "));
    text += "      [[ $PREFIX == -* ]] || _describe word next\n";
  }
  if (!specs.empty()) {
    text += fmt::format("      _arguments {} ;;\n", fmt::join(specs, " \\\n        "));
  } else {
    text += "      ;;\n";
  }
  return text;
}

}  // namespace

std::string zsh_completion(const std::vector<CommandNode>& tree) {
  std::string lines;
  for (const CommandNode& node : tree) lines += case_of_node(node);
  return fmt::format(fmt::runtime(kZshScript), fmt::arg("command", tree.front().path),
                     fmt::arg("function", completion_function(tree)),
                     fmt::arg("paths", case_of_paths(tree)), fmt::arg("lines", lines));
}

}  // namespace paceline
