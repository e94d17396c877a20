// exp(A) by Pade approximants with scaling and squaring (Higham, 2005).
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg/dense.h"

namespace tn::linalg {
namespace {

template <class T>
Real<T> norm_one(Mat<T> a) {
  Real<T> most = 0;
  for (int64_t j = 0; j < a.n; ++j) {
    Real<T> sum = 0;
    for (int64_t i = 0; i < a.m; ++i) sum += std::abs(a(i, j));
    if (!(sum <= most)) most = sum;  // NaN stays
  }
  return most;
}

template <class T>
struct Space {
  explicit Space(int64_t n) : n_(n) {}
  Mat<T> make() {
    blocks_.emplace_back(static_cast<size_t>(n_ * n_));
    return {blocks_.back().data(), n_, n_};
  }

 private:
  int64_t n_;
  std::vector<std::vector<T>> blocks_;
};

template <class T>
Mat<T> times(Space<T>& space, Mat<T> a, Mat<T> b) {
  const Mat<T> c = space.make();
  product(c, T(1), a, Op::None, b, Op::None, T(0));
  return c;
}
// c += f a.
template <class T>
void add(Mat<T> c, double f, Mat<T> a) {
  const T factor = static_cast<T>(static_cast<Real<T>>(f));
  for (int64_t i = 0; i < a.m * a.n; ++i) c.p[i] += factor * a.p[i];
}
template <class T>
void add_identity(Mat<T> c, double f) {
  for (int64_t i = 0; i < c.n; ++i) c(i, i) += static_cast<Real<T>>(f);
}

// Coefficients of the diagonal approximants' numerators, lowest power first.
constexpr double kThree[] = {120, 60, 12, 1};
constexpr double kFive[] = {30240, 15120, 3360, 420, 30, 1};
constexpr double kSeven[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kNine[] = {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1};
constexpr double kThirteen[] = {64764752532480000.,
                                32382376266240000.,
                                7771770303897600.,
                                1187353796428800.,
                                129060195264000.,
                                10559470521600.,
                                670442572800.,
                                33522128640.,
                                1323241920.,
                                40840800.,
                                960960.,
                                16380.,
                                182.,
                                1.};

// Odd powers' part U = A (...) and even powers' V of the approximant of a degree below ten.
template <class T>
void small_degree(Space<T>& space, Mat<T> a, const double* c, int degree, Mat<T> u, Mat<T> v) {
  const Mat<T> square = times(space, a, a), odd = space.make();
  Mat<T> power = square;
  add_identity(odd, c[1]);
  add_identity(v, c[0]);
  for (int k = 2; k < degree; k += 2) {
    add(odd, c[k + 1], power);
    add(v, c[k], power);
    if (k + 2 < degree) power = times(space, power, square);
  }
  product(u, T(1), a, Op::None, odd, Op::None, T(0));
}

template <class T>
void degree_thirteen(Space<T>& space, Mat<T> a, Mat<T> u, Mat<T> v) {
  const double* c = kThirteen;
  const Mat<T> a2 = times(space, a, a), a4 = times(space, a2, a2), a6 = times(space, a4, a2);
  const Mat<T> high = space.make();
  add(high, c[13], a6);
  add(high, c[11], a4);
  add(high, c[9], a2);
  const Mat<T> odd = times(space, a6, high);
  add(odd, c[7], a6);
  add(odd, c[5], a4);
  add(odd, c[3], a2);
  add_identity(odd, c[1]);
  product(u, T(1), a, Op::None, odd, Op::None, T(0));
  std::fill(high.p, high.p + high.n * high.n, T(0));
  add(high, c[12], a6);
  add(high, c[10], a4);
  add(high, c[8], a2);
  product(v, T(1), a6, Op::None, high, Op::None, T(0));
  add(v, c[6], a6);
  add(v, c[4], a4);
  add(v, c[2], a2);
  add_identity(v, c[0]);
}

}  // namespace

template <class T>
void exponential(Mat<T> a) {
  const int64_t n = a.n;
  if (n == 0) return;
  const double norm = static_cast<double>(norm_one(a));
  if (!std::isfinite(norm)) {
    std::fill(a.p, a.p + n * n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
    return;
  }
  Space<T> space(n);
  const Mat<T> u = space.make(), v = space.make();
  constexpr bool kNarrow = std::is_same_v<Real<T>, float>;
  // Bounds under which a degree reaches the dtype's accuracy; float has three degrees, double five.
  int squarings = 0;
  const double last = kNarrow ? 3.925724783138660 : 5.371920351148152;
  if (norm > last) {
    squarings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / last))));
    const Real<T> scale = static_cast<Real<T>>(std::ldexp(1.0, -squarings));
    for (int64_t i = 0; i < n * n; ++i) a.p[i] *= scale;
  }
  if constexpr (kNarrow) {
    if (norm <= 4.258730016922831e-1) small_degree(space, a, kThree, 3, u, v);
    else if (norm <= 1.880152677804762) small_degree(space, a, kFive, 5, u, v);
    else small_degree(space, a, kSeven, 7, u, v);
  } else {
    if (norm <= 1.495585217958292e-2) small_degree(space, a, kThree, 3, u, v);
    else if (norm <= 2.539398330063230e-1) small_degree(space, a, kFive, 5, u, v);
    else if (norm <= 9.504178996162932e-1) small_degree(space, a, kSeven, 7, u, v);
    else if (norm <= 2.097847961257068) small_degree(space, a, kNine, 9, u, v);
    else degree_thirteen(space, a, u, v);
  }
  // (V - U) X = V + U.
  const Mat<T> denominator = space.make();
  for (int64_t i = 0; i < n * n; ++i) {
    denominator.p[i] = v.p[i] - u.p[i];
    a.p[i] = v.p[i] + u.p[i];
  }
  std::vector<int32_t> pivots(static_cast<size_t>(n));
  lu(denominator, pivots.data());
  lu_solve(denominator, pivots.data(), Op::None, a);
  for (; squarings > 0; --squarings) {
    product(u, T(1), a, Op::None, a, Op::None, T(0));
    copy(a, u);
  }
}

#define TN_INSTANTIATE(T) template void exponential(Mat<T>);
TN_FOR_EACH_ELEMENT(TN_INSTANTIATE)
#undef TN_INSTANTIATE

}  // namespace tn::linalg
