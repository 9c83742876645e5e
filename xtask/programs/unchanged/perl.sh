# needs perl
cat >case.pl <<'P'
use strict; use warnings; use Digest::SHA qw(sha256_hex); use List::Util qw(sum shuffle); use Storable qw(dclone freeze thaw); use Encode; use POSIX;
my %h; $h{"key$_"} = [ ($_) x ($_ % 20), "v" x ($_ * 7 % 5000) ] for 1 .. 30000;
my $copy = dclone(\%h); my $again = thaw(freeze($copy));
print sha256_hex(join '|', map { "$_=" . join ',', @{ $again->{$_} } } sort keys %$again), "\n";
my $text = join ' ', map { sprintf '%05d:%s', $_, chr(97 + $_ % 26) x ($_ % 11) } 1 .. 120000;
my $n = () = $text =~ /(\d{5}):(a+|e+|z+)/g; (my $other = $text) =~ s/([aeiou]+)/<\U$1>/g; print "$n ", length $other, " ", sha256_hex($other), "\n";
my $big = "\0" x 30_000_000; substr($big, 10_000_000, 5) = "x" x 3_000_000; vec($big, 77, 8) = 200; print length($big), " ", ($big =~ tr/x//), " ", unpack('%32C*', $big), "\n";
my $wide = decode('UTF-8', encode('UTF-8', join '', map { chr(0x400 + $_ % 800) } 1 .. 400000)); print length $wide, " ", sha256_hex(encode('UTF-16', lc $wide)), "\n";
my @p; for my $c (1 .. 6) { my $pid = fork; if (!$pid) { my $s = join ',', map { $_ * $c } 1 .. 50000; POSIX::_exit(length($s) % 251) } push @p, $pid } print join(' ', map { waitpid $_, 0; $? >> 8 } @p), "\n";
P
PERL_HASH_SEED=0 "$UNDER" perl case.pl
