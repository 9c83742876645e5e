# Messages of 1 MiB to and fro between two threads: each is allocated, filled, handed over, read and freed.
set -eu
. "$COMMON"
case $1 in
prepare)
    need c++
    cat >messages.cpp <<'CPP'
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>
struct Channel {
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::vector<unsigned char>> waiting;
    void send(std::vector<unsigned char> message)
    {
        std::lock_guard<std::mutex> held(lock);
        waiting.push_back(std::move(message));
        changed.notify_one();
    }
    std::vector<unsigned char> receive()
    {
        std::unique_lock<std::mutex> held(lock);
        changed.wait(held, [this] { return !waiting.empty(); });
        std::vector<unsigned char> message = std::move(waiting.front());
        waiting.pop_front();
        return message;
    }
};
int main(int, char **words)
{
    Channel there, back;
    const int count = std::atoi(words[1]);
    std::thread echo([&] {
        for (int i = 0; i < count; i++) {
            const std::vector<unsigned char> message = there.receive();
            back.send(std::vector<unsigned char>(message));
        }
    });
    unsigned long sum = 0;
    for (int i = 0; i < count; i++) {
        std::vector<unsigned char> message((1 << 20) + 4096 * (i % 5));
        std::memset(message.data(), i, message.size());
        there.send(std::move(message));
        const std::vector<unsigned char> answer = back.receive();
        sum += answer[answer.size() / 3] + answer.size();
    }
    echo.join();
    std::printf("%lu\n", sum);
}
CPP
    c++ -O2 -pthread -o messages messages.cpp
    ;;
run) "$PREPARED/messages" "$(part 1500)" ;;
esac
