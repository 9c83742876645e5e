/*
 * Tables that are made and dropped again and again: their memory comes from a pool, so that each finds the pages of
 * the one before, and the program has no page faults for them.
 *
 *     c++ -std=c++17 tables.cpp -lcachewise_pool
 */
#include <cachewise_pool.hpp>
#include <cstdio>
#include <numeric>
#include <vector>

int main()
{
    cw_pool_config config;
    cw_pool_config_init(&config);
    config.capacity = std::size_t{64} << 20;
    cw_pool *pool;
    if (cw_pool_create(&config, &pool) != CW_OK) {
        std::fprintf(stderr, "no pool: %s\n", cw_pool_message());
        return 1;
    }
    double sum = 0;
    {
        cachewise::pool_resource large(pool);
        for (int round = 0; round < 20; round++) {
            std::pmr::vector<double> table(std::size_t{1} << 20, 1.0, &large);
            sum += std::accumulate(table.begin(), table.end(), 0.0);
        }
    }
    cw_pool_stats figures = {};
    figures.struct_size = sizeof figures;
    cw_pool_get_stats(pool, &figures);
    std::printf("%.0f; %zu MiB taken from the system\n", sum, figures.populated >> 20);
    cw_pool_destroy(pool);
}
