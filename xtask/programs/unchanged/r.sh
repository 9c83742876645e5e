# needs Rscript
cat >case.R <<'P'
set.seed(7); x <- matrix(rnorm(490000), 700); s <- x %*% t(x); cat(format(sum(diag(s)), digits = 12), dim(solve(s + diag(700))), "\n")
d <- data.frame(g = rep(1:500, 400), v = seq_len(200000) %% 997); a <- aggregate(v ~ g, d, sum); cat(nrow(a), sum(a$v), "\n")
b <- raw(3e7); b[seq(1, 3e7, 4099)] <- as.raw(5); cat(sum(as.integer(b)), length(c(b, rev(b))), "\n")
u <- unserialize(serialize(d, NULL)); cat(identical(u, d), nchar(paste(d$v, collapse = "")), "\n")
w <- sort(sprintf("%06d", (1:200000 * 7919) %% 1000003)); cat(w[1], w[100000], length(unique(substr(w, 1, 3))), "\n")
P
"$UNDER" Rscript --vanilla case.R
