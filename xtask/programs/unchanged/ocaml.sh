# needs ocamlopt
cat >case.ml <<'P'
let () = let h = Hashtbl.create 16 in
  for i = 0 to 200000 do Hashtbl.replace h (Printf.sprintf "k%d" (i mod 5003)) (String.make (i mod 700) 'x') done;
  let l = List.sort compare (Hashtbl.fold (fun k v a -> (k, String.length v) :: a) h []) in
  Printf.printf "%d %s\n" (List.length l) (Digest.to_hex (Digest.string (String.concat "," (List.map (fun (k, n) -> k ^ string_of_int n) l))));
  let b = Bytes.make 40_000_000 'a' in Bytes.blit b 0 b 3 30_000_000; Bytes.fill b 5_000_000 9_000_000 'z';
  Printf.printf "%s\n" (Digest.to_hex (Digest.bytes b)); Gc.compact ();
  let a = Array.init 1_000_000 (fun i -> (i * 7919) mod 1000003) in Array.stable_sort compare a; Printf.printf "%d %d\n" a.(0) a.(999_999)
P
"$UNDER" ocamlopt -w -a case.ml -o case && "$UNDER" ./case
