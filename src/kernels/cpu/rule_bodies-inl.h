// The bodies of update rules: each updates a vector of values and of their slots from a vector of
// gradients. The file is included once for each instruction set.
#if defined(PACELINE_KERNELS_CPU_RULE_BODIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PACELINE_KERNELS_CPU_RULE_BODIES_INL_H_
#undef PACELINE_KERNELS_CPU_RULE_BODIES_INL_H_
#else
#define PACELINE_KERNELS_CPU_RULE_BODIES_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/cpu/rule_numbers.h"

HWY_BEFORE_NAMESPACE();
namespace paceline {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct SgdBody {
  static constexpr std::size_t kSlots = 0;
  static constexpr bool kScaled = true;
  V rate;
  explicit SgdBody(const RuleNumbers& n) : rate(hn::Set(D(), n.rate)) {}
  void operator()(V& w, V&, V&, V g) const { w = hn::NegMulAdd(rate, g, w); }
};

struct MomentumBody {
  static constexpr std::size_t kSlots = 1;
  static constexpr bool kScaled = true;
  V rate, momentum;
  bool nesterov;
  explicit MomentumBody(const RuleNumbers& n)
      : rate(hn::Set(D(), n.rate)), momentum(hn::Set(D(), n.a)), nesterov(n.nesterov) {}
  // Rounds as torch.optim.SGD does, so that both train with equal bits: first the product, then the
  // sum.
  void operator()(V& w, V& m, V&, V g) const {
    m = hn::Add(hn::Mul(momentum, m), g);
    w = hn::NegMulAdd(rate, nesterov ? hn::MulAdd(momentum, m, g) : m, w);
  }
};

struct DelayedNesterovBody {
  static constexpr std::size_t kSlots = 2;
  static constexpr bool kScaled = true;
  V rate, momentum, share;
  bool renews;
  explicit DelayedNesterovBody(const RuleNumbers& n)
      : rate(hn::Set(D(), n.rate)),
        momentum(hn::Set(D(), n.a)),
        share(hn::Set(D(), 1 / n.b)),
        renews(n.nesterov) {}
  void operator()(V& w, V& m, V& pending, V g) const {
    V change = hn::Mul(share, g);
    pending = hn::Add(pending, change);
    if (renews) {
      m = hn::MulAdd(momentum, m, pending);
      pending = hn::Zero(D());
      change = hn::MulAdd(momentum, m, change);
    }
    w = hn::NegMulAdd(rate, change, w);
  }
};

struct AdamBody {
  static constexpr std::size_t kSlots = 2;
  static constexpr bool kScaled = true;
  V rate, beta1, beta2, rest1, rest2, epsilon;
  explicit AdamBody(const RuleNumbers& n)
      : rate(hn::Set(D(), n.rate)),
        beta1(hn::Set(D(), n.a)),
        beta2(hn::Set(D(), n.b)),
        rest1(hn::Set(D(), float(1 - double(n.a)))),
        rest2(hn::Set(D(), float(1 - double(n.b)))),
        epsilon(hn::Set(D(), n.c)) {}
  void operator()(V& w, V& m, V& v, V g) const {
    m = hn::MulAdd(beta1, m, hn::Mul(rest1, g));
    v = hn::MulAdd(beta2, v, hn::Mul(rest2, hn::Mul(g, g)));
    w = hn::Sub(w, hn::Div(hn::Mul(rate, m), hn::Add(hn::Sqrt(v), epsilon)));
  }
};

struct AdamwBody : AdamBody {
  V keep;
  explicit AdamwBody(const RuleNumbers& n) : AdamBody(n), keep(hn::Set(D(), n.keep)) {}
  void operator()(V& w, V& m, V& v, V g) const {
    w = hn::Mul(keep, w);
    AdamBody::operator()(w, m, v, g);
  }
};

struct AdagradBody {
  static constexpr std::size_t kSlots = 1;
  static constexpr bool kScaled = true;
  V rate, epsilon;
  explicit AdagradBody(const RuleNumbers& n)
      : rate(hn::Set(D(), n.rate)), epsilon(hn::Set(D(), n.b)) {}
  void operator()(V& w, V& a, V&, V g) const {
    a = hn::MulAdd(g, g, a);
    w = hn::Sub(w, hn::Div(hn::Mul(rate, g), hn::Add(hn::Sqrt(a), epsilon)));
  }
};

struct RmspropBody {
  static constexpr std::size_t kSlots = 2;
  static constexpr bool kScaled = true;
  V rate, decay, rest, momentum, epsilon;
  explicit RmspropBody(const RuleNumbers& n)
      : rate(hn::Set(D(), n.rate)),
        decay(hn::Set(D(), n.a)),
        rest(hn::Set(D(), float(1 - double(n.a)))),
        momentum(hn::Set(D(), n.b)),
        epsilon(hn::Set(D(), n.c)) {}
  void operator()(V& w, V& s, V& m, V g) const {
    s = hn::MulAdd(decay, s, hn::Mul(rest, hn::Mul(g, g)));
    const V moved = hn::Div(hn::Mul(rate, g), hn::Sqrt(hn::Add(s, epsilon)));
    m = hn::MulAdd(momentum, m, moved);
    w = hn::Sub(w, m);
  }
};

// Multiplies by the inverse of the rate instead of dividing: with three divisions a vector,
// divisions and not memory would limit the rule.
struct FtrlBody {
  static constexpr std::size_t kSlots = 2;
  static constexpr bool kScaled = true;
  V per_rate, l1, l2;
  explicit FtrlBody(const RuleNumbers& n)
      : per_rate(hn::Set(D(), 1 / n.rate)), l1(hn::Set(D(), n.a)), l2(hn::Set(D(), n.b)) {}
  void operator()(V& w, V& squares, V& z, V g) const {
    const D d;
    const V sum = hn::MulAdd(g, g, squares);
    const V root = hn::Sqrt(sum);
    const V sigma = hn::Mul(hn::Sub(root, hn::Sqrt(squares)), per_rate);
    z = hn::Add(z, hn::NegMulAdd(sigma, w, g));
    squares = sum;
    const V shrunk = hn::CopySign(hn::Sub(hn::Abs(z), l1), z);
    const V moved = hn::Neg(hn::Div(shrunk, hn::MulAdd(root, per_rate, l2)));
    w = hn::IfThenElse(hn::Gt(hn::Abs(z), l1), moved, hn::Zero(d));
  }
};

// FTRL divides by the rate. This body, for a rate that is 0 or a denormal, leaves the variable and
// its slots unchanged, since the inverse could overflow a float.
struct UnmovedFtrlBody {
  static constexpr std::size_t kSlots = FtrlBody::kSlots;
  static constexpr bool kScaled = false;
  explicit UnmovedFtrlBody(const RuleNumbers&) {}
  static bool suits(const RuleNumbers& n) {
    return std::fabs(n.rate) < std::numeric_limits<float>::min();
  }
  void operator()(V&, V&, V&, V) const {}
};

struct EmaBody {
  static constexpr std::size_t kSlots = 0;
  static constexpr bool kScaled = false;
  V decay, rest;
  explicit EmaBody(const RuleNumbers& n)
      : decay(hn::Set(D(), n.a)), rest(hn::Set(D(), float(1 - double(n.a)))) {}
  void operator()(V& w, V&, V&, V g) const { w = hn::MulAdd(decay, w, hn::Mul(rest, g)); }
};

struct AddBody {
  static constexpr std::size_t kSlots = 0;
  static constexpr bool kScaled = false;
  explicit AddBody(const RuleNumbers&) {}
  void operator()(V& w, V&, V&, V g) const { w = hn::Add(w, g); }
};

struct AssignBody {
  static constexpr std::size_t kSlots = 0;
  static constexpr bool kScaled = false;
  explicit AssignBody(const RuleNumbers&) {}
  void operator()(V& w, V&, V&, V g) const { w = g; }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace paceline
HWY_AFTER_NAMESPACE();

#endif
