#pragma once
// The words of the wire: pieces, numbers, escaped bytes, CPU lists. No heap, no library, no header.

namespace hpclaunch::shim {

constexpr int kMaxNumber = 2147483647;
constexpr int kMaskBits = 8192;  // CONFIG_NR_CPUS of the largest kernels

/// Bytes owned by the caller.
struct Text {
  const char* at = nullptr;
  int size = 0;

  constexpr Text() = default;
  constexpr Text(const char* start, int length) : at(start), size(length) {}
  constexpr Text(const char* zero_terminated) : at(zero_terminated) {
    while (zero_terminated[size] != '\0') ++size;
  }
  constexpr Text from(int position) const { return {at + position, size - position}; }
  friend constexpr bool operator==(Text a, Text b) {
    if (a.size != b.size) return false;
    for (int i = 0; i < a.size; ++i) {
      if (a.at[i] != b.at[i]) return false;
    }
    return true;
  }
};

/// Moves the piece before `stop` from `rest` to `piece`. False: no `stop`, the piece was all of it.
constexpr bool cut(Text& rest, char stop, Text& piece) {
  int size = 0;
  while (size < rest.size && rest.at[size] != stop) ++size;
  piece = {rest.at, size};
  const bool found = size < rest.size;
  rest = rest.from(found ? size + 1 : size);
  return found;
}

/// Each piece between '/'; of an empty list none.
template <class Use>
constexpr void each_piece(Text list, Use use) {
  Text piece;
  while (list.size > 0) {
    cut(list, '/', piece);
    use(piece);
  }
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes decimal digits off the front of `rest`. False: there are none, or the number is too large.
constexpr bool take_number(Text& rest, int& number) {
  int digits = 0;
  number = 0;
  for (; digits < rest.size && is_digit(rest.at[digits]); ++digits) {
    const int digit = rest.at[digits] - '0';
    if (number > (kMaxNumber - digit) / 10) return false;
    number = number * 10 + digit;
  }
  rest = rest.from(digits);
  return digits > 0;
}

/// True when all of `text` is one number.
constexpr bool is_number(Text text, int& number) {
  return take_number(text, number) && text.size == 0;
}

/// True when all of `text` is a number of bytes: up to 18 decimal digits.
constexpr bool is_bytes(Text text, unsigned long long& number) {
  constexpr int kMaxDigits = 18;
  number = 0;
  for (int i = 0; i < text.size; ++i) {
    if (!is_digit(text.at[i])) return false;
    number = number * 10 + static_cast<unsigned long long>(text.at[i] - '0');
  }
  return text.size > 0 && text.size <= kMaxDigits;
}

constexpr int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// Takes one byte, escaped or plain, off the front of `rest`; a '^' is none. False: none is left.
constexpr bool take_byte(Text& rest, char& out) {
  while (rest.size > 0 && rest.at[0] == '^') rest = rest.from(1);
  if (rest.size == 0) return false;
  const bool escaped = rest.at[0] == '%' && rest.size > 2;
  const int byte = escaped ? hex_digit(rest.at[1]) * 16 + hex_digit(rest.at[2]) : rest.at[0];
  rest = rest.from(escaped ? 3 : 1);
  return out = static_cast<char>(byte), true;
}

constexpr int kMaxPath = 4096;  // Linux's PATH_MAX, the zero included

/// Writes the bytes of an escaped path and a zero to `out`, as many as there is room for.
constexpr void read_path(Text item, char (&out)[kMaxPath]) {
  int size = 0;
  while (size < kMaxPath - 1 && take_byte(item, out[size])) ++size;
  out[size] = '\0';
}

/// One character of a mark: six bits.
constexpr char mark_digit(unsigned bits) {
  return "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[bits & 63U];
}

/// FNV-1a of 32 bits. `late`: without what stands between two '^'.
constexpr unsigned fnv1a(Text text, bool late = false) {
  unsigned hash = 2166136261U;
  bool skip = false;
  for (int i = 0; i < text.size; ++i) {
    const bool stop = late && text.at[i] == '^';
    if (stop) skip = !skip;
    if (stop || !skip) hash = (hash ^ static_cast<unsigned char>(text.at[i])) * 16777619U;
  }
  return hash;
}

/// Does `mark` stand for `hash`? Six bits a character, the lowest first.
constexpr bool is_mark_of(Text mark, unsigned hash) {
  hash ^= hash >> 17;
  for (int i = 0; i < mark.size; ++i, hash >>= 6) {
    if (mark.at[i] != mark_digit(hash)) return false;
  }
  return true;
}

constexpr bool is_mark_of(Text mark, Text text) { return is_mark_of(mark, fnv1a(text)); }

struct Mask {
  static constexpr int kBits = 8 * static_cast<int>(sizeof(unsigned long));
  static constexpr int kWords = kMaskBits / kBits;
  unsigned long words[kWords] = {};
  constexpr void add(int cpu) { words[cpu / kBits] |= 1UL << (cpu % kBits); }
  constexpr bool has(int cpu) const { return (words[cpu / kBits] >> (cpu % kBits) & 1UL) != 0; }
  constexpr int count() const {
    int bits = 0;
    for (unsigned long word : words) {
      for (; word != 0; word &= word - 1) ++bits;
    }
    return bits;
  }
  constexpr bool contains(const Mask& other) const {
    for (int i = 0; i < kWords; ++i) {
      if ((other.words[i] & ~words[i]) != 0) return false;
    }
    return true;
  }
  friend constexpr bool operator==(const Mask&, const Mask&) = default;
};

/// The `first`-th to `last`-th, from 0, of the CPUs in `all`, to `part`. Returns how many CPUs there are.
constexpr int take_part(const Mask& all, int first, int last, Mask& part) {
  int at = 0;
  for (int cpu = 0; cpu < kMaskBits; ++cpu) {
    if (!all.has(cpu)) continue;
    if (at >= first && at <= last) part.add(cpu);
    ++at;
  }
  return at;
}

/// The cores that have some of the CPUs in `all`, in the order of `runs` ("FIRST*CORES*STEP*THREADS*STRIDE" with '/'
/// between); the CPUs of the `first`-th to `last`-th of them, from 0, go to `part`. Returns how many cores there are.
constexpr int take_cores(const Mask& all, Text runs, int first, int last, Mask& part) {
  int at = 0;
  each_piece(runs, [&](Text run) {
    long long number[5] = {};  // first, cores, step, threads, stride
    for (long long& one : number) {
      int value = 0;
      if (!take_number(run, value) || value > kMaskBits) return;
      one = value;
      if (run.size > 0) run = run.from(1);
    }
    for (long long core = 0; core < number[1]; ++core) {
      bool found = false;
      for (long long thread = 0; thread < number[3]; ++thread) {
        const long long cpu = number[0] + core * number[2] + thread * number[4];
        if (cpu >= kMaskBits || !all.has(static_cast<int>(cpu))) continue;
        found = true;
        if (at >= first && at <= last) part.add(static_cast<int>(cpu));
      }
      at += found ? 1 : 0;
    }
  });
  return at;
}

/// Reads "0-3,8" (cpuset(7)) into `mask`. False: not such a list; `mask` is then of no use.
constexpr bool read_list(Text list, Mask& mask) {
  Text range;
  for (bool more = true; more;) {
    more = cut(list, ',', range);
    int first = 0;
    if (!take_number(range, first)) return false;
    int last = first;
    if (range.size > 0 && (range.at[0] != '-' || !is_number(range.from(1), last))) return false;
    if (last < first || last >= kMaskBits) return false;
    for (int cpu = first; cpu <= last; ++cpu) mask.add(cpu);
  }
  return true;
}

/// Reads "F-L".
constexpr bool read_part(Text text, int& first, int& last) {
  return take_number(text, first) && text.size > 1 && is_number(text.from(1), last);
}

/// Item `position` of "a/b/c"; one item alone serves every position. False: the column is too
/// short.
constexpr bool pick(Text column, int position, Text& item) {
  bool more = cut(column, '/', item);
  if (!more) return true;
  for (; more && position > 0; --position) more = cut(column, '/', item);
  return position == 0;
}

}  // namespace hpclaunch::shim
