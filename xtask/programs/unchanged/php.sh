# needs php
cat >case.php <<'P'
<?php
ini_set('memory_limit', '1G');
$rows = []; for ($i = 0; $i < 40000; $i++) $rows["k$i"] = ['n' => $i, 's' => str_repeat(chr(65 + $i % 26), $i * 13 % 3000), 'f' => $i / 7];
$text = serialize($rows); echo strlen($text), ' ', hash('sha256', $text), ' ', unserialize($text) == $rows ? 'same' : 'other', "\n";
$json = json_encode($rows); echo md5($json), ' ', count(json_decode($json, true)), "\n";
uasort($rows, fn($a, $b) => [strlen($b['s']), $a['n']] <=> [strlen($a['s']), $b['n']]); echo implode(',', array_slice(array_keys($rows), 0, 9)), "\n";
echo preg_match_all('/k(\d+)[02468]"/', $json, $m), ' ', crc32(preg_replace_callback('/A{5,}/', fn($m) => strlen($m[0]), $json)), "\n";
$big = str_repeat("\0", 40000000); for ($i = 0; $i < 40000000; $i += 4099) $big[$i] = 'z'; echo md5($big), ' ', substr_count($big, 'z'), ' ', md5(strrev($big) . substr($big, 1000, 20000000)), "\n";
function gen($n) { for ($i = 0; $i < $n; $i++) yield $i => array_fill(0, $i % 50, $i); } $sum = 0; foreach (gen(60000) as $k => $v) $sum += count($v) * $k % 97; echo $sum, "\n";
P
"$UNDER" php -d opcache.enable_cli=0 case.php
