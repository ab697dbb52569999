#pragma once
// Catch2 3 where it is installed, 2.13 where the distribution has only that. The names are version 3's.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif
