# A store of keys and values that writes tables in memory, drops them once they are full, and compacts old ones into new
# ones, with readers beside it.
set -eu
. "$COMMON"
case $1 in
prepare)
    need c++
    cat >store.cpp <<'CPP'
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
using Table = std::map<std::string, std::string>;
static std::mutex lock;
static std::vector<std::shared_ptr<Table>> tables;
static std::uint64_t next(std::uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}
static void compact()
{
    auto merged = std::make_shared<Table>();
    for (const auto &table : tables)
        for (const auto &entry : *table)
            if (entry.second.size() % 5 == 0)
                (*merged)[entry.first] = entry.second;
    tables.assign(1, merged);
}
int main(int, char **words)
{
    const int rounds = std::atoi(words[1]);
    std::atomic<bool> done{false};
    std::vector<std::thread> readers;
    for (int r = 0; r < 3; r++)
        readers.emplace_back([&done, r] {
            std::uint64_t state = r + 1;
            while (!done) {
                std::shared_ptr<Table> table;
                {
                    std::lock_guard<std::mutex> held(lock);
                    if (!tables.empty())
                        table = tables[next(state) % tables.size()];
                }
                std::string copy(200 + next(state) % 40000, 'r');
                if (table && !table->empty())
                    copy += table->begin()->second;
                std::this_thread::sleep_for(std::chrono::microseconds(300));
            }
        });
    std::uint64_t state = 42;
    for (int round = 0; round < rounds; round++) {
        auto table = std::make_shared<Table>();
        for (int i = 0; i < 6000; i++)
            (*table)["key" + std::to_string(next(state) % 200000)] = std::string(20 + next(state) % 900, 'v');
        std::lock_guard<std::mutex> held(lock);
        tables.push_back(table);
        if (tables.size() == 6)
            compact();
    }
    std::size_t sum = 0;
    {
        std::lock_guard<std::mutex> held(lock);
        compact();
        tables[0]->erase(std::next(tables[0]->begin(), tables[0]->size() / 4), tables[0]->end());
        for (const auto &entry : *tables[0])
            sum += entry.second.size();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    done = true;
    for (auto &reader : readers)
        reader.join();
    std::printf("%zu %zu\n", tables[0]->size(), sum);
}
CPP
    c++ -O2 -pthread -o store store.cpp
    ;;
run) "$PREPARED/store" "$(part 36)" ;;
esac
