#pragma once
// Compares our declarations with a vendor's header at compile time. Each comparison is a program of its own:
// 0 compared, 77 left out because the header is missing, 1 missing where it was to be installed.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

namespace hpclaunch::test {

template <class T, class = void>
struct IsComplete : std::false_type {};
template <class T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

/// Whether a value of `Ours` may be passed as `Theirs`: integers and enums of one size, floating point of one type, structures of one size and alignment, pointers to such; a
/// pointer to nothing in particular stands for a handle.
template <class Ours, class Theirs>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using A = std::remove_cv_t<std::remove_pointer_t<Ours>>;
    using B = std::remove_cv_t<std::remove_pointer_t<Theirs>>;
    if constexpr (std::is_void_v<A>) return std::is_void_v<B> || !IsComplete<B>::value;
    if constexpr (!std::is_void_v<A>) return alike<A, B>();
    return false;
  } else if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    constexpr bool whole = (std::is_integral_v<Ours> || std::is_enum_v<Ours>) ==
                           (std::is_integral_v<Theirs> || std::is_enum_v<Theirs>);
    return whole && std::is_class_v<Ours> == std::is_class_v<Theirs> &&
           sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
  }
}

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
struct SameCall<R(A...), S(B...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(A) != sizeof...(B)) return false;
    if constexpr (sizeof...(A) == sizeof...(B)) return alike<R, S>() && (alike<A, B>() && ...);
    return false;
  }
  static constexpr bool value = compare();
};

/// The exit status without the header. `expected`: scripts/test installs it, so that CI has no excuse.
inline int without_header(const char* header, bool expected) {
  const char* const ci = std::getenv("CI");
  const bool fails = expected && ci != nullptr && std::strcmp(ci, "true") == 0;
  std::printf("%s: %s is not installed\n", fails ? "failed" : "left out", header);
  return fails ? 1 : 77;
}

}  // namespace hpclaunch::test

#define HEADER_COMPARED \
  int main() { return 0; }
#define HEADER_MISSING(HEADER) \
  int main() { return hpclaunch::test::without_header(HEADER, HPCLAUNCH_HEADER_EXPECTED != 0); }
#define SAME_CALL(OURS, THEIRS) \
  static_assert(hpclaunch::test::SameCall<OURS, decltype(THEIRS)>::value, #THEIRS)
#define SAME_SIZE(OURS, THEIRS) \
  static_assert(sizeof(OURS) == sizeof(THEIRS) && alignof(OURS) == alignof(THEIRS), #THEIRS)
#define SAME_FIELD(OURS, FIELD, THEIRS, THEIR_FIELD)                      \
  static_assert(offsetof(OURS, FIELD) == offsetof(THEIRS, THEIR_FIELD) && \
                    sizeof(OURS::FIELD) == sizeof(THEIRS::THEIR_FIELD),   \
                #THEIRS "." #THEIR_FIELD)
#define SAME_VALUE(OURS, THEIRS) \
  static_assert(static_cast<long long>(OURS) == static_cast<long long>(THEIRS), #THEIRS)
