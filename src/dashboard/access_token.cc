#include "dashboard/access_token.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cctype>

#include "net/tls/secret_key.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kLeast = 16, kMost = 256;

// URLs hold these characters unescaped.
bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-._~").find(c) != std::string_view::npos;
}

}  // namespace

std::string read_access_token(const std::string& path) {
  const std::string what = "the token file";
  std::string text = read_secret_file(what, path, kMost + 1);
  if (text.ends_with('\n')) text.pop_back();
  if (text.size() >= kLeast && text.size() <= kMost && std::ranges::all_of(text, is_plain))
    return text;
  throw Error(ErrorCode::kInvalidArgument,
              what + " " + path +
                  " must have one line of 16 to 256 letters, digits, '-', '.', '_' and '~': "
                  "`openssl rand -hex 32` prints one");
}

bool is_same_token(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace paceline
