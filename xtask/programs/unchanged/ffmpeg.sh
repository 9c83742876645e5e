# needs ffmpeg
bits="-hide_banner -loglevel error -nostdin -fflags +bitexact -flags +bitexact -threads 2"
"$UNDER" ffmpeg $bits -f lavfi -i testsrc2=size=1280x720:rate=25:duration=3 -f lavfi -i sine=frequency=440:duration=3 \
    -c:v mpeg4 -q:v 4 -c:a flac -fflags +bitexact -flags:v +bitexact -flags:a +bitexact out.mkv && sha256sum <out.mkv
"$UNDER" ffmpeg $bits -i out.mkv -vf 'scale=640:360,hue=h=60,vflip,gblur=3' -c:v ffv1 -an -f framemd5 -
"$UNDER" ffmpeg $bits -i out.mkv -vn -af aresample=16000 -f md5 -
"$UNDER" ffmpeg $bits -i out.mkv -vf reverse -c:v rawvideo -f md5 -
