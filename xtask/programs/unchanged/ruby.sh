# needs ruby
cat >case.rb <<'P'
require 'json'; require 'digest'; require 'zlib'; require 'set'
rows = (1..20000).map { |i| { 'id' => i, 'name' => "row #{i}" * (i % 9 + 1), 'tags' => (0..i % 6).to_a } }
text = JSON.generate(rows); back = JSON.parse(text)
puts back == rows, text.bytesize, Digest::SHA256.hexdigest(text)
packed = Zlib::Deflate.deflate(text, 6); puts Zlib::Inflate.inflate(packed) == text, packed.bytesize
big = 'x' * 20_000_000; big[5_000_000, 1000] = 'y' * 7_000_000; puts Digest::MD5.hexdigest(big), big.count('y')
puts (1..8).map { |t| Thread.new { (1..3000).map { |i| ('%d-%d' % [t, i]).hash; i.to_s * 50 }.join.size } }.map(&:value).inspect
GC.stress = true; puts (1..60).map { |i| i.to_s * 3 }.join.sum; GC.stress = false
GC.compact if GC.respond_to?(:compact)
puts rows.sort_by { |r| [-r['tags'].size, r['name']] }.first(3).inspect, Set.new(text.chars).size
r, w = IO.pipe; pid = fork { r.close; w.write(text.reverse); w.close; exit!(0) }; w.close
puts Digest::SHA1.hexdigest(r.read); Process.wait(pid); puts $?.exitstatus
P
"$UNDER" ruby case.rb
