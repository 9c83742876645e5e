# needs nginx curl
mkdir -p www logs
for i in $(seq 1 60); do head -c $((i * i * 700)) /dev/zero | tr '\0' "$(printf "\\$(printf %o $((65 + i % 26)))")" >"www/$i.txt"; done
cat >nginx.conf <<C
daemon off; worker_processes 2; pid $PWD/nginx.pid; error_log $PWD/logs/error.log; user root;
events { worker_connections 64; }
http { access_log off; gzip on; gzip_min_length 100; gzip_types text/plain; default_type text/plain;
  client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
  server { listen unix:$PWD/one; root $PWD/www; }
  server { listen unix:$PWD/two; location / { proxy_pass http://unix:$PWD/one:; proxy_buffering on; } } }
C
"$UNDER" nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/logs/error.log" &
server=$!
for i in $(seq 1 200); do [ -S two ] && break; sleep 0.05; done
for round in 1 2 3; do for i in $(seq 1 60); do
    curl -s --unix-socket "$PWD/$([ $round = 2 ] && echo two || echo one)" $([ $round = 3 ] && echo --compressed) "http://x/$i.txt"
done | sha256sum; done
curl -s -o /dev/null -w '%{http_code}\n' --unix-socket one http://x/none
kill -QUIT $server; wait $server; echo "ended $?"
