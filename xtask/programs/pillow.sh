# Pillow: a picture of 12 million pixels turned, scaled, blurred and mixed.
set -eu
. "$COMMON"
case $1 in
prepare)
    need_python "from PIL import Image" "Pillow not installed"
    ;;
run)
    repeated_work "$(part 8)" <<'PYTHON'
import hashlib
from PIL import Image, ImageChops, ImageFilter

picture = Image.radial_gradient("L").resize((4000, 3000))
picture = Image.merge("RGB", (picture, picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), ImageChops.invert(picture)))

def work():
    turned = picture.transpose(Image.Transpose.ROTATE_90).transpose(Image.Transpose.ROTATE_270)
    mixed = ImageChops.add(turned, ImageChops.invert(picture))
    grey = mixed.convert("L").point(lambda value: value // 2)
    return Image.merge("RGB", (grey, grey, grey)).resize((800, 600), Image.Resampling.BOX)

def report(result):
    print(result.size, hashlib.sha256(result.filter(ImageFilter.BLUR).tobytes()).hexdigest())
PYTHON
    ;;
esac
