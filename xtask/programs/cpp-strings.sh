# A C++ program that copies short strings and hashes them, or one that looks short keys up in a map: small calls of
# memcpy and memcmp whose operands were just stored, and whose results are read at once.
set -eu
. "$COMMON"
case $1 in
prepare)
    need c++
    cat >strings.cpp <<'CPP'
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>
static std::uint32_t drawn = 1;
static std::uint32_t draw(std::uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return std::uint32_t((std::uint64_t(drawn) * below) >> 32);
}
int main(int, char **words)
{
    const bool map = std::string(words[1]) == "map";
    std::vector<std::string> keys(20000);
    for (auto &key : keys)
        for (std::uint32_t left = 4 + draw(21); left; left--)
            key += char('a' + draw(26));
    std::unordered_map<std::string, std::uint64_t> counts;
    for (const auto &key : keys)
        counts[key] = key.size();
    std::uint64_t sum = 0;
    for (int round = 0; round < std::atoi(words[2]); round++)
        for (const auto &key : keys) {
            std::string copy(key);
            copy.back() = key.back();
            sum += map ? counts.find(copy)->second : std::hash<std::string>()(copy) >> 60;
        }
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
CPP
    c++ -O2 -o strings strings.cpp
    ;;
run) "$PREPARED/strings" "$2" "$(part 800)" ;;
esac
