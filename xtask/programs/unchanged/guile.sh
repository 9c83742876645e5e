# needs guile
cat >case.scm <<'P'
(use-modules (srfi srfi-1) (rnrs bytevectors))
(define b (make-bytevector 30000000 7)) (bytevector-copy! b 0 b 5 20000000) (bytevector-fill! b 9)
(display (bytevector-u8-ref b 12345)) (newline)
(define words (map (lambda (i) (number->string (modulo (* i 7919) 100003))) (iota 100000)))
(display (string-length (string-join (sort words string<?) " "))) (newline)
(define h (make-hash-table)) (for-each (lambda (w) (hash-set! h w (string-append w w))) words)
(display (hash-count (const #t) h)) (newline)
(display (fold + 0 (map string-length (hash-map->list (lambda (k v) v) h)))) (newline)
P
GUILE_AUTO_COMPILE=0 "$UNDER" guile --no-auto-compile case.scm
