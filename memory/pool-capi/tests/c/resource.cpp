// The pool as C++ programs see it: names, exceptions, and the memory resource.
#include <cachewise_pool.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#define CHECK(what) ((what) ? (void)0 : (std::printf("%d: %s\n", __LINE__, #what), std::exit(1)))

// A name is a type's or a function's, not both.
static cw_pool_stats figures(const cw_pool *pool)
{
    cw_pool_stats stats = {};
    stats.struct_size = sizeof stats;
    CHECK(cw_pool_get_stats(pool, &stats) == CW_OK);
    return stats;
}

static_assert(noexcept(cw_pool_alloc(nullptr, 0)) && noexcept(cw_pool_destroy(nullptr)), "none throws");
static_assert(noexcept(cw_pool_create(nullptr, nullptr)) && noexcept(cw_pool_message()), "none throws");
static_assert(std::is_standard_layout<cw_pool_config>::value, "a structure of C");

// Counts what goes past the pool.
struct counting : std::pmr::memory_resource {
    std::size_t taken = 0, live = 0;
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        taken++;
        live++;
        return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void *block, std::size_t bytes, std::size_t alignment) override
    {
        live--;
        std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

int main()
{
    cw_pool_config config;
    cw_pool_config_init(&config);
    config.capacity = std::size_t{32} << 20;
    cw_pool *pool, *other;
    CHECK(cw_pool_create(&config, &pool) == CW_OK && cw_pool_create(&config, &other) == CW_OK);
    const std::size_t page = cw_pool_page_size(pool), mib = std::size_t{1} << 20;
    counting upstream;
    {
        cachewise::pool_resource resource(pool, 128 * 1024, &upstream), same(pool, 1, &upstream), foreign(other);
        CHECK(resource.pool() == pool && resource.upstream_resource() == &upstream);
        CHECK(resource.is_equal(same) && !resource.is_equal(foreign) && !resource.is_equal(upstream));

        // Large ones are the pool's, in whole pages; small ones, and those aligned to more than a page, are not.
        void *large = resource.allocate(mib + 1);
        CHECK(cw_pool_contains(pool, large) && figures(pool).allocated == mib + page && upstream.taken == 0);
        std::memset(large, 1, mib + 1);
        void *small = resource.allocate(128 * 1024 - 1);
        void *aligned = resource.allocate(mib, 2 * page);
        CHECK(!cw_pool_contains(pool, small) && !cw_pool_contains(pool, aligned) && upstream.taken == 2);
        CHECK(reinterpret_cast<std::uintptr_t>(aligned) % (2 * page) == 0);
        // One that the pool has no room for.
        void *huge = resource.allocate(64 * mib);
        CHECK(!cw_pool_contains(pool, huge) && upstream.taken == 3);
        // Each goes back where it is from, by way of an equal resource too.
        same.deallocate(large, mib + 1);
        resource.deallocate(small, 128 * 1024 - 1);
        resource.deallocate(aligned, mib, 2 * page);
        resource.deallocate(huge, 64 * mib);
        CHECK(upstream.live == 0 && figures(pool).allocated == 0);

        // Containers, which move and grow.
        std::pmr::vector<std::pmr::string> words(&resource);
        for (int number = 0; number < 20000; number++)
            words.emplace_back("a word that is longer than a small string " + std::to_string(number));
        std::pmr::vector<std::pmr::string> moved(std::move(words), &same);
        CHECK(moved.size() == 20000 && moved.back().back() == '9' && figures(pool).allocated >= mib / 2);

        std::vector<std::thread> threads;
        for (int number = 0; number < 3; number++)
            threads.emplace_back([&resource, number] {
                for (int round = 0; round < 200; round++) {
                    const std::size_t bytes = 200000 + 1000 * std::size_t(round);
                    auto *block = static_cast<unsigned char *>(resource.allocate(bytes));
                    std::memset(block, number + 1, bytes);
                    CHECK(block[0] == number + 1 && block[bytes - 1] == number + 1);
                    resource.deallocate(block, bytes);
                }
            });
        for (auto &thread : threads)
            thread.join();
    }
    CHECK(upstream.live == 0 && figures(pool).allocated == 0);

    // No memory anywhere is an exception of the resource, and none of the pool's own functions.
    cachewise::pool_resource alone(pool, 1, std::pmr::null_memory_resource());
    bool thrown = false;
    try {
        static_cast<void>(alone.allocate(64 * mib));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);

    // Freed twice ends the program.
    void *block = alone.allocate(page);
    alone.deallocate(block, page);
    std::set_terminate([] {
        std::puts("resource held");
        std::fflush(stdout);
        std::_Exit(0);
    });
    alone.deallocate(block, page);
    return 1;
}
