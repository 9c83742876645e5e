# redis-benchmark, and what is in the server afterwards.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_redis
    ;;
run)
    start_redis
    await_redis
    begun=$(date +%s.%N)
    redis-benchmark -s socket -q -n "$(part 20000)" -c 20 -d 1024 -t set,get,incr,lpush,hset,mset >told
    redis-benchmark -s socket -q -n "$(part 1500)" -c 4 -d 262144 -t set,get >>told
    redis-benchmark -s socket -q -n "$(part 1000)" -c 8 -t lrange_600 >>told
    # The work's own time, without the server's start and end.
    echo "$begun $(date +%s.%N)" | awk '{print $2 - $1}' >"${SECONDS_FILE:-/dev/null}"
    awk -v ORS=' ' '/requests per second/ {print $1}' told
    echo
    redis_contents
    ;;
esac
