# A C++ program whose vectors grow, are copied and dropped: each doubling is a new large block.
set -eu
. "$COMMON"
case $1 in
prepare)
    need c++
    cat >vectors.cpp <<'CPP'
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>
int main(int, char **words)
{
    std::uint64_t sum = 0;
    for (int round = 0; round < std::atoi(words[1]); round++) {
        std::vector<std::uint64_t> grows;
        for (std::uint64_t i = 0; i < 1500000; i++)
            grows.push_back(i * 2654435761u + round);
        std::vector<std::uint64_t> copy(grows);
        std::vector<std::vector<double>> rows(8, std::vector<double>(100000, round));
        std::string text(1 << 20, 'a' + round % 26);
        text += text;
        sum += std::accumulate(copy.begin(), copy.end(), std::uint64_t(0)) + text.size();
        for (const auto &row : rows)
            sum += std::uint64_t(row[round % row.size()]);
    }
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
}
CPP
    c++ -O2 -o vectors vectors.cpp
    ;;
run) "$PREPARED/vectors" "$(part 40)" ;;
esac
