# Redis under redis-benchmark: small values, values of 256 KiB, long replies.
set -eu
case $1 in
prepare)
    command -v redis-server >/dev/null || { echo "redis-server not installed"; exit 77; }
    command -v redis-benchmark >/dev/null || { echo "redis-benchmark not installed"; exit 77; }
    ;;
run)
    # The allocator under test is the server's, not that of who asks it.
    preload=${LD_PRELOAD-}
    unset LD_PRELOAD
    LD_PRELOAD=$preload redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --save '' \
        --appendonly no --daemonize no >server.log 2>&1 &
    server=$!
    trap 'kill $server 2>/dev/null || true' EXIT
    ask() { redis-cli -s socket "$@"; }
    tries=0
    until ask ping >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || { echo "no answer"; cat server.log; exit 1; }
        sleep 0.05
    done
    begun=$(date +%s.%N)
    redis-benchmark -s socket -q -n 8000 -c 20 -d 1024 -t set,get,incr,lpush,hset,mset >told
    redis-benchmark -s socket -q -n 2000 -c 4 -d 262144 -t set,get >>told
    redis-benchmark -s socket -q -n 400 -c 8 -t lrange_600 >>told
    echo "$begun $(date +%s.%N)" | awk '{printf "%.6f", $2 - $1}' >"$SECONDS_FILE"
    ask dbsize
    ask strlen key:__rand_int__
    ask llen mylist
    ask get counter:__rand_int__
    ask eval 'local t = {} for i = 1, 20000 do t[i] = i .. string.rep("x", i % 50) end
        redis.call("set", "joined", table.concat(t)) return redis.sha1hex(redis.call("get", "joined"))' 0
    ask shutdown nosave >/dev/null 2>&1 || true
    wait $server
    ;;
esac
