#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "cli/completion/shell_completion.h"

namespace paceline {
namespace {

const char* const kBashScript =
    R"(# bash completion for {command}
{function}() {{
  local line={command} current=${{COMP_WORDS[COMP_CWORD]}} flag=${{COMP_WORDS[COMP_CWORD-1]}} i
  # Bash takes --flag=value for three words.
  if [[ $current == = ]]; then current=
  elif [[ $flag == = && COMP_CWORD -gt 2 ]]; then flag=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$line ${{COMP_WORDS[i]}}" in {paths}) line+=" ${{COMP_WORDS[i]}}" ;; esac
  done
  local words= files=
  case "$line $flag" in
{values}    *) case "$line" in
{lines}    esac ;;
  esac
  [[ -z $files ]] || compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen $files -W "$words" -- "$current")
  [[ ${{COMPREPLY[0]}} != *= ]] || compopt -o nospace 2>/dev/null
}}
complete -F {function} {command}
)";

// Returns the cases of the flags that take a value: one case for all flags that take the same
// values.
std::string cases_of_values(const std::vector<CommandNode>& tree) {
  std::map<std::string, std::vector<std::string>> flags_of;
  for (const CommandNode& node : tree) {
    for (const Flag& flag : node.flags) {
      const Takes takes = what_it_takes(flag);
      if (takes == Takes::kNothing) continue;
      std::string does = ":";
      if (takes == Takes::kFile) does = "files=-f";
      if (takes == Takes::kFolder) does = "files=-d";
      if (takes == Takes::kChoice) {
        does = fmt::format("words='{}'", fmt::join(choices_of(flag.placeholder), " "));
      }
      if (!flag.completions.empty()) {
        does = fmt::format("words='{}'", fmt::join(flag.completions, " "));
      }
      flags_of[does].push_back(fmt::format("'{} {}'", node.path, flag.name));
    }
  }
  std::string text;
  for (const auto& [does, flags] : flags_of) {
    text += fmt::format("    {}) {} ;;\n", fmt::join(flags, "|"), does);
  }
  return text;
}

// Flags are offered after a dash, and where nothing else may follow.
std::string case_of_line(const CommandNode& node) {
  std::vector<std::string> flags, words;
  for (const Flag& flag : node.flags) flags.push_back(flag.name);
  for (const CommandNode::Word& word : node.words) words.push_back(word.text);
  bool files = false;
  for (const Flag& argument : node.positionals) {
    files |= what_it_takes(argument) == Takes::kFile;
    for (const std::string& choice : choices_of(argument.placeholder)) words.push_back(choice);
  }
  std::string text = fmt::format("      '{}') ", node.path);
  if (words.empty() && !files) return text + fmt::format("words='{}' ;;\n", fmt::join(flags, " "));
  return text +
         fmt::format("if [[ $current == -* ]]; then words='{}'; else words='{}' files={}; fi ;;\n",
                     fmt::join(flags, " "), fmt::join(words, " "), files ? "-f" : "");
}

}  // namespace

std::string bash_completion(const std::vector<CommandNode>& tree) {
  std::string lines;
  for (const CommandNode& node : tree) lines += case_of_line(node);
  return fmt::format(fmt::runtime(kBashScript), fmt::arg("command", tree.front().path),
                     fmt::arg("function", completion_function(tree)),
                     fmt::arg("paths", case_of_paths(tree)),
                     fmt::arg("values", cases_of_values(tree)), fmt::arg("lines", lines));
}

}  // namespace paceline
