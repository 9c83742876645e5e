# needs convert identify
export MAGICK_THREAD_LIMIT=2
"$UNDER" convert -size 1600x1200 -seed 7 plasma:blue-red -depth 8 one.ppm && sha256sum <one.ppm
"$UNDER" convert one.ppm -resize 900x -blur 0x3 -rotate 17 -modulate 110,90 -depth 8 two.ppm && sha256sum <two.ppm
"$UNDER" convert one.ppm -colorspace Gray -edge 2 -negate -define png:exclude-chunks=date,time -strip three.png && "$UNDER" identify -format '%# %wx%h\n' three.png
"$UNDER" convert one.ppm \( +clone -flop \) +append -sharpen 0x1 -colors 64 -depth 8 rgb:- | sha256sum
"$UNDER" convert one.ppm -quality 85 four.jpg && "$UNDER" convert four.jpg -depth 8 gray:- | sha256sum
