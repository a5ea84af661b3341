#include "predict/cipher_rate.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(CipherRate, IsThatOfACore) {
  const double rate = measured_cipher_rate();
  EXPECT_GT(rate, 1e6);  // bytes per second, on any machine that runs this
  EXPECT_LT(rate, 1e12);
}

}  // namespace
}  // namespace paceline
