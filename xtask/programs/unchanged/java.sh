# needs javac java
cat >Case.java <<'P'
import java.util.*; import java.util.stream.*; import java.security.*; import java.util.zip.*; import java.io.*;
public class Case { static String sha(byte[] b) throws Exception { return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(b)); }
  public static void main(String[] a) throws Exception {
    byte[] big = new byte[60_000_000]; for (int i = 0; i < big.length; i += 509) big[i] = (byte) i; System.arraycopy(big, 0, big, 13, 50_000_000); System.out.println(sha(big) + " " + Arrays.mismatch(big, Arrays.copyOfRange(big, 1, big.length)));
    Map<String, List<Integer>> m = new TreeMap<>(); for (int i = 0; i < 300_000; i++) m.computeIfAbsent("k" + i % 997, k -> new ArrayList<>()).add(i * 31 % 7919); System.out.println(m.values().stream().mapToLong(l -> l.stream().mapToInt(x -> x).sum()).sum());
    ByteArrayOutputStream o = new ByteArrayOutputStream(); try (GZIPOutputStream g = new GZIPOutputStream(o)) { g.write(big, 0, 20_000_000); } System.out.println(o.size() + " " + sha(new GZIPInputStream(new ByteArrayInputStream(o.toByteArray())).readAllBytes()));
    System.out.println(IntStream.range(0, 8).parallel().mapToObj(t -> { StringBuilder s = new StringBuilder(); for (int i = 0; i < 100_000; i++) s.append(i * t).append(','); return s.toString().hashCode(); }).collect(Collectors.toList()));
    java.nio.ByteBuffer d = java.nio.ByteBuffer.allocateDirect(32 << 20); for (int i = 0; i < d.capacity(); i += 8) d.putLong(i, i * 0x9E3779B97F4A7C15L); byte[] out = new byte[d.capacity()]; d.get(0, out); System.out.println(sha(out)); } }
P
"$UNDER" javac -d . Case.java && "$UNDER" java -Xmx1g -Xshare:off -cp . Case
