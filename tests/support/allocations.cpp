#include "support/allocations.h"

#include <cstdlib>
#include <new>

namespace {

long count = 0;

}  // namespace

long hpclaunch::test::allocations() { return count; }

void* operator new(std::size_t size) {
  ++count;
  if (void* piece = std::malloc(size)) return piece;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size);
}
void operator delete(void* piece) noexcept { std::free(piece); }
void operator delete(void* piece, std::size_t) noexcept { std::free(piece); }
