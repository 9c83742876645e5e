# Redis with values of megabytes, under its own load generator, saved at the end.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_redis
    ;;
run)
    on_one_cpu
    start_redis --proto-max-bulk-len 64mb
    await_redis
    redis-benchmark -s socket -q -n "$(part 100)" -c 2 -d 3000000 -t set,get >told
    ask strlen key:__rand_int__
    ask eval "$(part 60 | sed 's/.*/local rounds = &/')"' local s = string.rep("0123456789abcdef", 65536)
        for i = 1, rounds do redis.call("setrange", "grown", i * 4096, s) redis.call("get", "grown") end
        return redis.sha1hex(redis.call("get", "grown"))' 0
    ask dbsize
    stop_redis
    ;;
esac
